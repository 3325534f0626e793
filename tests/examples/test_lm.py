"""The language model of `examples/lm`: its parts, and whole runs that are stopped."""

import functools
import importlib
import inspect
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from . import lm_figures, lm_numpy
from .conftest import HANGS, compiled
from .figures import EXAMPLES
from .lm_figures import TINY

SIZE = [word for name, value in TINY.items() for word in (f"--{name}", str(value))]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some modules of Python's library, small ones."""
    place = tmp_path_factory.mktemp("text")
    lm_figures.copy_small_modules(place)
    return place


@pytest.fixture
def config(folder: Path, tmp_path: Path) -> Any:
    from lm.config import Config

    places = {"data": str(folder), "corpus": str(folder.with_name("corpus"))}
    return Config(**TINY, **places, output=str(tmp_path / "run"))


@pytest.fixture
def prepared(config: Any) -> dict[str, Any]:
    from lm import corpus

    return corpus.prepare(config)


#: No file can grow beyond 60,000 bytes, as on a disk that is full.
SMALL_FILES = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def start(module: str, *options: object, **more: Any) -> subprocess.Popen:
    """Start a module of the package as a reader would, in `examples`."""
    many = {"JAX_NUM_CPU_DEVICES": str(more.pop("devices", 1))}
    how = more.pop("how", ["-m"])
    return subprocess.Popen(
        [sys.executable, *how, f"lm.{module}", *map(str, options)],
        cwd=EXAMPLES,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **compiled(), **many},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def ended(running: subprocess.Popen, status: int = 0) -> str:
    """What a program printed; on stderr, where it failed."""
    try:
        out, err = running.communicate(timeout=HANGS)
    finally:
        running.kill()
    assert running.returncode == status, f"{out}\n{err}"
    return err if status else out


def train(config: Any, *options: object, **more: Any) -> subprocess.Popen:
    places = ["--data", config.data, "--corpus", config.corpus]
    return start("train", *SIZE, *places, "--output", config.output, *options, **more)


def weights(run: str | Path) -> dict[str, bytes]:
    import jax
    from lm import evaluate

    leaves = jax.tree_util.tree_leaves_with_path(evaluate.load(run)[2])
    return {jax.tree_util.keystr(p): np.asarray(leaf).tobytes() for p, leaf in leaves}


def losses(run: str | Path) -> list[float]:
    lines = Path(run, "metrics.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [event["loss"] for event in events if "loss" in event]


# --- Text, tokens, batches ------------------------------------------------------------


def test_near_copies_are_left_out(folder: Path):
    from lm import text

    texts = text.read_folder(str(folder))
    assert text.without_copies(texts).keys() <= texts.keys()
    longest = max(texts, key=lambda name: len(texts[name]))
    copies = {**texts, "copy.py": texts[longest].replace("self", "me")[:-300]}
    kept = text.without_copies(copies)
    assert "copy.py" not in kept
    assert longest in kept


def test_a_file_keeps_its_side_when_others_come():
    from lm import text

    texts = {f"{i}.py": "text" for i in range(400)}
    some = dict(list(texts.items())[100:])
    before, after = text.split(some), text.split(texts)
    assert sorted(name for names in after.values() for name in names) == sorted(texts)
    shares = {part: len(names) / 400 for part, names in after.items()}
    assert shares == pytest.approx(
        {"train": 0.9, "validation": 0.05, "test": 0.05}, abs=0.03
    )
    for part, names in before.items():
        assert set(names) <= set(after[part])


def test_passages_seen_before_are_those_that_python_finds():
    from lm import text

    rng = np.random.default_rng(0)
    known = bytes(rng.integers(97, 123, 4000, np.uint8))
    new = bytes(rng.integers(97, 123, 500, np.uint8))
    held = new[:200] + known[1000:1080] + new[200:] + known[50:90]
    covered = text.seen_before(held, text.passages(known))
    wanted = np.zeros(len(held), bool)
    for i in range(len(held) - text.WINDOW + 1):
        if held[i : i + text.WINDOW] in known:
            wanted[i : i + text.WINDOW] = True
    np.testing.assert_array_equal(covered, wanted)
    assert covered.sum() == 80


def test_training_text_loses_what_it_shares_with_held_out_text(folder: Path):
    from lm import text

    texts = text.read_folder(str(folder))
    before = {
        part: text.joined({name: texts[name] for name in names})
        for part, names in text.split(text.without_copies(texts)).items()
    }
    parts = text.parts(texts)
    after = {part: text.joined(texts) for part, texts in parts.items()}
    for part in ("validation", "test"):
        assert after[part] == before[part]
        shared = text.seen_before(after[part], text.passages(before["train"])).mean()
        left = text.seen_before(after[part], text.passages(after["train"])).mean()
        assert left < 0.01 < shared
    lines = {line for each in texts.values() for line in each.splitlines()}
    kept = after["train"].decode().splitlines()
    assert set(kept) <= lines
    assert 0.5 < len(after["train"]) / len(before["train"]) < 1


def test_tokens_give_the_text_back_and_count_its_bytes(config: Any, prepared: dict):
    from lm import corpus, text

    tokenizer = corpus.tokenizer_of(config.corpus, prepared["tokenizer"])
    sizes = corpus.bytes_of_tokens(tokenizer)
    texts = text.read_folder(config.data)
    for given in [*texts.values(), "ü → \t\r\n 漢字\x00"]:
        ids = tokenizer.encode(given).ids
        assert tokenizer.decode(ids) == given
        assert sizes[ids].sum() == len(given.encode())
    for part in ("validation", "test"):
        ids = np.load(Path(config.corpus) / f"{part}.npy")
        assert sizes[ids].sum() == prepared["bytes"][part]


def test_processes_read_their_rows_of_the_same_batches(config: Any, prepared: dict):
    from lm import loader

    whole = loader.batches(config)
    parts = [loader.batches(config, i, 2) for i in range(2)]
    for _ in range(20):
        halves = [next(part) for part in parts]
        np.testing.assert_array_equal(np.concatenate(halves, axis=1), next(whole))
    state, after = whole.get_state(), [next(whole) for _ in range(3)]
    again = loader.batches(config)
    again.set_state(state)
    np.testing.assert_array_equal([next(again) for _ in range(3)], after)
    other = loader.batches(config, 1, 2)
    other.set_state(state)  # of one process, for the second of two
    np.testing.assert_array_equal(next(other), after[0][:, config.batch // 2 :])


def test_a_batch_of_one_row_a_shard(config: Any, prepared: dict):
    from dataclasses import replace

    from lm import loader

    rows = next(loader.batches(replace(config, batch=config.shards)))
    assert rows.shape == (1, config.shards, config.context + 1)


def test_one_head_of_keys_on_a_mesh(model: Any):
    import math

    _, value, _ = a_step(model.config, kv_heads=1)
    assert value == pytest.approx(math.log(model.config.vocab), rel=0.05)


def test_no_two_processes_see_the_same_document(config: Any, prepared: dict):
    shards = prepared["documents of shards"]
    names = [name for shard in shards for name in shard]
    assert sorted(names) == sorted(prepared["files"]["train"])
    from lm import corpus, loader, text

    tokenizer = corpus.tokenizer_of(config.corpus, prepared["tokenizer"])
    texts = text.parts(text.read_folder(config.data))["train"]
    for process in range(2):
        own = range(process * 4, process * 4 + 4)
        names = [name for i in own for name in shards[i]]
        wanted = np.concatenate([corpus.encode(tokenizer, [texts[n]]) for n in names])
        files = [loader.on_disk(Path(config.corpus) / f"train-{i}.bin") for i in own]
        np.testing.assert_array_equal(np.concatenate(files), wanted)
        # The rows of a process are windows of these shards, and of no other.
        cuts = [loader.Windows(tokens, config.context) for tokens in files]
        windows = {cut[i].tobytes() for cut in cuts for i in range(len(cut))}
        read = loader.batches(config, process, 2)
        for _ in range(len(windows) // (config.batch // 2)):
            rows = next(read).reshape(-1, config.context + 1)
            assert {row.tobytes() for row in rows} <= windows
        # In one epoch of a shard, each of its windows comes once.
        first = loader.Windows(files[0], config.context)
        rows = loader.shard(Path(config.corpus) / f"train-{own[0]}.bin", config, own[0])
        epochs = [
            np.concatenate([rows[i].reshape(-1, config.context + 1) for i in some])
            for some in (range(len(first) // 2), range(len(first) // 2, len(first)))
        ]
        seen = {row.tobytes() for epoch in epochs for row in epoch}
        assert seen == {first[i].tobytes() for i in range(len(first))}


def test_a_thousand_times_the_data_takes_no_longer(tmp_path: Path):
    less, more = lm_figures.seconds_a_batch(tmp_path).values()
    files = list(tmp_path.rglob("*.bin"))
    assert sum(path.stat().st_blocks * 512 for path in files) < 20_000_000
    assert sum(path.stat().st_size for path in files) > 3_000_000_000
    assert more < 3 * less + 5e-4


# --- The model ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    sys.path.insert(0, str(EXAMPLES))
    import jax
    from lm import model as module
    from lm.config import Config

    graph, init = module.create(Config(**TINY))
    params = jax.jit(init)(jax.random.key(0))
    return SimpleNamespace(graph=graph, params=params, config=Config(**TINY))


def some_tokens(rows: int, length: int) -> np.ndarray:
    return np.random.default_rng(1).integers(1, 300, (rows, length), np.int32)


def test_no_token_sees_what_comes_after_it(model: Any):
    import jax
    from flax import nnx

    @jax.jit
    def logits(params, tokens):
        return nnx.merge(model.graph, params)(tokens)[0]

    tokens = some_tokens(1, 32)
    before = logits(model.params, tokens)
    for place in (1, 17, 31):
        other = tokens.copy()
        other[0, place] += 1
        apart = abs(logits(model.params, other) - before).max(axis=(0, 2))
        assert apart[:place].max() < 1e-5
        assert apart[place:].min() > 1e-5


def test_the_same_model_in_plain_numpy_gives_the_same_logits(model: Any):
    import jax
    from flax import nnx

    tokens = some_tokens(2, 32)
    ours, _ = jax.jit(lambda p, x: nnx.merge(model.graph, p)(x))(model.params, tokens)
    plain = jax.tree.map(np.asarray, nnx.to_pure_dict(model.params))
    theirs = lm_numpy.logits(plain, tokens, model.config.heads)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    # Layers in another order, or another scale, would be seen.
    blocks = jax.tree.map(lambda leaf: leaf[::-1], plain["blocks"])
    for other in ({**plain, "blocks": blocks}, {**plain, "norm": {"scale": 2.0}}):
        apart = lm_numpy.logits(other, tokens, model.config.heads) - theirs
        assert abs(apart).max() > 1e-3


def test_the_same_model_in_plain_numpy_gives_the_same_gradient(model: Any):
    import jax
    import optax
    from flax import nnx

    rows = some_tokens(2, 33)

    def mean_loss(params: Any) -> Any:
        out, _ = nnx.merge(model.graph, params)(rows[:, :-1])
        each = optax.softmax_cross_entropy_with_integer_labels(out, rows[:, 1:])
        return each.mean()

    value, grads = jax.jit(jax.value_and_grad(mean_loss))(model.params)
    plain = jax.tree.map(np.asarray, nnx.to_pure_dict(model.params))
    loss, theirs = lm_numpy.loss_and_grads(plain, rows, model.config.heads)
    assert loss == pytest.approx(float(value), rel=1e-5)
    ours = nnx.to_pure_dict(grads)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for one, other in zip(*map(jax.tree.leaves, (ours, theirs)), strict=True):
        assert abs(one).max() > 0
        np.testing.assert_allclose(one, other, atol=1e-4 * abs(one).max())


def test_operations_a_token_are_those_that_xla_counts(model: Any):
    """Of a forward pass, a third of all; XLA counts a loop's body once, so one layer.

    It also counts what is no product, and both halves of the masked attention.
    """
    from dataclasses import replace

    import jax
    from flax import nnx
    from lm import model as module
    from lm import train

    config = replace(model.config, layers=1, width=128, context=64)
    graph, init = module.create(config)
    params = jax.jit(init)(jax.random.key(0))
    tokens = some_tokens(2, 64)
    forward = jax.jit(lambda p, x: nnx.merge(graph, p)(x)[0])
    counted = forward.lower(params, tokens).compile().cost_analysis()["flops"]
    ours = train.flops_a_token(config, params) / 3 * tokens.size
    assert 0.8 < ours / counted < 1


def saved_for_backward(model: Any, remat: str) -> int:
    """Bytes that the forward pass of a loss keeps, by JAX's own list of residuals."""
    from dataclasses import replace
    from functools import partial

    import jax
    from lm import model as module
    from lm import train

    graph, _ = module.create(replace(model.config, remat=remat))
    rows = some_tokens(16, 33)
    _, back = jax.eval_shape(
        partial(jax.vjp, partial(train.loss, graph)), model.params, rows
    )
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(back))


def test_remat_keeps_less_for_the_backward_pass(model: Any):
    none, dots, everything = (
        saved_for_backward(model, remat) for remat in ("none", "dots", "all")
    )
    assert none > 1.5 * dots > 1.5 * everything


def a_step(config: Any, **more: Any) -> tuple[Any, float, Any]:
    """The state and loss after one step on one device, and the compiled step."""
    from dataclasses import replace

    import jax
    from lm import loader, parallel, train

    config = replace(config, **more)
    mesh = parallel.make_mesh(config, 1)
    with jax.set_mesh(mesh):
        graph, init, _ = train.make_state(config, mesh)
        rows = some_tokens(config.batch, config.context + 1)
        rows = rows.reshape(config.accumulate, -1, config.context + 1)
        step = train.make_step(config, graph)
        step = step.lower(init(jax.random.key(0)), train.spec_of_rows(config, mesh))
        step = step.compile()
        state, value = step(init(jax.random.key(0)), loader.to_devices(rows, mesh))
    return jax.device_get(state), float(value), step


def largest_difference(a: Any, b: Any) -> float:
    import jax

    apart = jax.tree.map(lambda x, y: np.abs(x - y).max(initial=0), a, b)
    return max(map(float, jax.tree.leaves(apart)))


@pytest.fixture(scope="module")
def plain(model: Any) -> Any:
    return a_step(model.config)


@pytest.mark.weekly
def test_parts_of_a_batch_and_remat_change_nothing(model: Any, plain: Any):
    """Adam's first moment is a tenth of the gradient, clipped to a norm of one."""
    state, value, _ = plain
    other, loss, _ = a_step(model.config, accumulate=2, remat="none")
    assert loss == pytest.approx(value, rel=1e-5)
    assert largest_difference(state["opt_state"], other["opt_state"]) < 1e-6


@pytest.mark.weekly
def test_bfloat16_computes_and_float32_remembers(model: Any, plain: Any):
    import jax

    state, value, step = a_step(model.config, compute="bfloat16")
    kinds = {leaf.dtype.name for leaf in jax.tree.leaves(state)}
    assert kinds == {"float32", "int32"}
    assert "bf16" in step.as_text()
    assert value == pytest.approx(plain[1], abs=0.02)


@pytest.mark.weekly
def test_every_layout_has_the_losses_of_one_device():
    found = lm_figures.layouts(**compiled())
    one = found["one device"]
    for layout, report in found.items():
        apart = 5e-3 if "bfloat16" in layout else 1e-5
        assert report["losses"] == pytest.approx(one["losses"], rel=apart), layout
        assert report["donated"] > 0.99 * report["results"]
    for smaller, larger in (
        ("one device", "one device, nothing recomputed"),
        ("one device, two parts of a batch", "one device"),
    ):
        assert found[smaller]["temporaries"] < 0.8 * found[larger]["temporaries"]
    assert found["fsdp"]["arguments"] < one["arguments"] / 6
    assert found["tensor"]["arguments"] < 0.8 * one["arguments"]
    assert one["collectives"] == {}
    assert set(found["data"]["collectives"]) == {"all-reduce"}
    assert found["fsdp"]["collectives"]["all-gather"] >= 8


# --- Writing, exporting, serving, adapting --------------------------------------------


def test_the_cache_changes_nothing_and_two_functions_do_everything(model: Any):
    import jax
    from lm import generate

    from justafter import watch

    tokens, lengths = some_tokens(3, 32), np.array([4, 9, 1], np.int32)
    prefill, step = generate.compiled(model.graph)
    how = 12, 7, 1.0, 0.9
    with watch() as log:
        cached = generate.write(prefill, step, model.params, tokens, lengths, *how)
        for seed in (1, 2):
            generate.write(
                prefill, step, model.params, tokens, lengths, 9, seed, 0.5, 1
            )
    assert {record.name: record.compilations for record in log.records} == {
        "prefill": 1,
        "step": 1,
    }
    plain = generate.write_uncached(model.graph, model.params, tokens, lengths, *how)
    for one, other, n in zip(cached, plain, lengths, strict=True):
        np.testing.assert_array_equal(one, other)
        assert len(one) == n + 11
    alone = generate.write(prefill, step, model.params, tokens[:1], lengths[:1], *how)
    np.testing.assert_array_equal(alone[0], cached[0])
    drawn = np.arange(3, dtype=np.uint32), np.float32(1.0), np.float32(0.9)
    token, cache = prefill(model.params, tokens, lengths, *drawn)
    step(model.params, cache, token, lengths, *drawn)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(cache)), "updated in place"
    jax.clear_caches()


def test_only_likely_tokens_are_drawn():
    import jax.numpy as jnp
    from lm import generate

    logits = jnp.log(jnp.tile(jnp.array([0.1, 0.6, 0.3]), (400, 1)))
    seeds, place = np.arange(400, dtype=np.uint32), np.full(400, 3)
    for top_p, wanted in ((0.5, {1}), (0.8, {1, 2}), (1.0, {0, 1, 2})):
        drawn = generate.draw(logits, seeds, place, 1.0, top_p)
        assert set(np.asarray(drawn).tolist()) == wanted
    assert set(np.asarray(generate.draw(logits, seeds, place, 0.0, 1.0)).tolist()) == {
        1
    }
    share = (np.asarray(generate.draw(logits, seeds, place, 1.0, 1.0)) == 1).mean()
    assert share == pytest.approx(0.6, abs=0.1)


@pytest.mark.weekly
def test_adapters_change_nothing_at_first_and_then_learn(model: Any):
    import jax
    from lm import adapt, train
    from lora import init, merge

    ids = np.tile(some_tokens(1, 50)[0], 20)
    first = init(jax.random.key(0), model.params, 4, adapt.is_layer)
    assert largest_difference(merge(first, model.params), model.params) == 0
    how = {"rank": 4, "steps": 30, "rate": 0.01, "seed": 0}
    adapters, count = adapt.fit(model.config, model.graph, model.params, ids, **how)
    assert 0 < count < sum(x.size for x in jax.tree.leaves(model.params)) / 3
    rows = np.stack([ids[i : i + 33] for i in range(16)])
    value = jax.jit(train.loss, static_argnums=0)
    before = value(model.graph, model.params, rows)
    assert value(model.graph, merge(adapters, model.params), rows) < before - 0.2


# --- Whole runs -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run that nobody stopped."""
    sys.path.insert(0, str(EXAMPLES))
    from lm.config import Config

    output = tmp_path_factory.mktemp("whole") / "run"
    places = {"data": str(folder), "corpus": str(folder.with_name("corpus"))}
    config = Config(**TINY, **places, output=str(output))
    ended(train(config))
    return config


def checkpoints(run: str | Path) -> set[int]:
    names = (path.name for path in Path(run, "checkpoints").glob("*"))
    return {int(name) for name in names if name.isdigit()}


def test_a_run_says_what_it_measured(whole: Any):
    run = Path(whole.output)
    events = [
        json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()
    ]
    assert events[0]["donated"] > 0.99 * events[0]["results"]
    assert [event["step"] for event in events if "loss" in event] == list(range(1, 13))
    assert losses(run)[-1] < losses(run)[0] - 0.2
    assert [e["step"] for e in events if "validation_bits_a_byte" in e] == [6, 12]
    found = json.loads((run / "results.json").read_text())
    assert 0 < found["share of the roof"] < 1
    assert 0 < found["test"] < 8
    assert checkpoints(run) == {8, 12}


def board(run: Path) -> list[tuple[int, dict[str, float]]]:
    """The steps and numbers of a run's file of events, its checksums tested."""
    from lm import events

    def fields(data: bytes) -> Iterator[tuple[int, Any]]:
        while data:
            number, kind, data = data[0] >> 3, data[0] & 7, data[1:]
            if kind in (1, 5):
                size = {1: 8, 5: 4}[kind]
                value, data = data[:size], data[size:]
                yield number, struct.unpack("<d" if kind == 1 else "<f", value)[0]
                continue
            value = shift = 0
            while data[0] > 127:
                value, shift, data = value | data[0] % 128 << shift, shift + 7, data[1:]
            value, data = value | data[0] << shift, data[1:]
            if kind == 2:
                value, data = data[:value], data[value:]
            yield number, value

    data, found = (run / "events.out.tfevents.lm").read_bytes(), []
    while data:
        size = int.from_bytes(data[:8], "little")
        message = data[12 : 12 + size]
        assert data[8:12] == events.checksum(data[:8])
        assert data[12 + size : 16 + size] == events.checksum(message)
        data, event = data[16 + size :], dict(fields(message))
        if 3 in event:
            assert event[3] == b"brain.Event:2"
            continue
        values = [dict(fields(value)) for _, value in fields(event[5])]
        found.append((event[2], {v[1].decode(): v[2] for v in values}))
    return found


def test_tensorboard_reads_what_the_lines_say(whole: Any):
    from lm import events

    # Examples of RFC 3720, and of the documentation of Protocol Buffers.
    assert events.crc32c(bytes(32)) == 0x8A9136AA
    assert events.crc32c(b"123456789") == 0xE3069283
    assert [events.varint(n) for n in (1, 300)] == [b"\x01", b"\xac\x02"]
    run = Path(whole.output)
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    wanted = [
        (line.pop("step"), {n: x for n, x in line.items() if n != "collectives"})
        for line in lines
    ]
    found = board(run)
    assert [step for step, _ in found] == [step for step, _ in wanted]
    for (_, values), (_, numbers) in zip(found, wanted, strict=True):
        assert values == pytest.approx(numbers, rel=1e-6)


def interrupted(config: Any, number: int, after: float) -> int:
    """Start a run, send it a signal some seconds after its first loss; its status."""
    running = train(config)
    try:
        metrics, before = Path(config.output, "metrics.jsonl"), None
        while running.poll() is None:
            now = metrics.read_text().count('"loss"') if metrics.exists() else 0
            before = now if before is None else before
            if now > before or (now and before and now < before):
                break
            time.sleep(0.01)
        time.sleep(after)
        running.send_signal(number)
        out, err = running.communicate(timeout=HANGS)
    finally:
        running.kill()
    if number == signal.SIGTERM and "SIGTERM" in out:
        assert running.returncode == 0, err
    return running.returncode


MOMENTS = [
    pytest.param(0.05 * i, marks=() if i == 1 else pytest.mark.weekly)
    for i in range(10)
]


@pytest.mark.parametrize("after", MOMENTS)
def test_terminated_or_killed_it_goes_on_bit_for_bit(
    after: float, whole: Any, config: Any
):
    interrupted(config, signal.SIGTERM, after)
    interrupted(config, signal.SIGKILL, after)
    ended(train(config))
    assert losses(config.output) == losses(whole.output)
    assert weights(config.output) == weights(whole.output)
    assert [step for step, _ in board(Path(config.output))] == [
        step for step, _ in board(Path(whole.output))
    ]


def test_another_run_than_the_one_that_was_asked_for(whole: Any):
    from dataclasses import replace

    from lm import train as program

    before = checkpoints(whole.output)
    assert refusal(program.train, replace(whole, rate=0.1)) == (
        f"The run in {whole.output} was made with --rate 0.004: give these, or another "
        "--output."
    )
    assert checkpoints(whole.output) == before


@pytest.mark.weekly
def test_a_disk_that_is_full(whole: Any, config: Any):
    shutil.copytree(
        Path(whole.output) / "checkpoints" / "8",
        Path(config.output) / "checkpoints" / "8",
    )
    said = ended(train(config, how=["-c", SMALL_FILES]), status=1)
    assert said.count("\n") == 1, said
    assert said.startswith(f"Cannot save to {config.output}/checkpoints: ")
    assert "step 8 is whole" in said
    assert checkpoints(config.output) == {8}


def test_a_full_disk_says_which_checkpoint_is_left(tmp_path: Path):
    from lm.checkpoint import Checkpoints

    checkpoints = Checkpoints.__new__(Checkpoints)
    checkpoints.folder = tmp_path
    error = OSError("No space left on device")
    assert "No checkpoint is yet whole: make room" in refusal(checkpoints.full, error)
    (tmp_path / "8").mkdir()
    assert "checkpoint of step 8 is whole" in refusal(checkpoints.full, error)


@pytest.mark.weekly
# As an error, the warning of the reader's own type would end the process.
@pytest.mark.filterwarnings("ignore:builtin type event_stats")
def test_a_profile_holds_steps_10_to_15(config: Any):
    from jax.profiler import ProfileData

    ended(train(config, "--steps", 17, "--profile"))
    [path] = Path(config.output, "profile").rglob("*.xplane.pb")
    data = ProfileData.from_file(str(path))
    steps = [
        dict(event.stats)["step_num"]
        for plane in data.planes
        for line in plane.lines
        for event in line.events
        if event.name == "step"
    ]
    assert steps == list(range(10, 16))


@pytest.mark.weekly
def test_exported_it_is_served_without_the_source(whole: Any, tmp_path: Path):
    place = tmp_path / "exported"
    ended(start("export", whole.output, place))
    clean = {**os.environ, "JAX_PLATFORMS": "cpu"}
    clean.pop("PYTHONPATH", None)
    command = [sys.executable, "-I", str(place / "serve.py"), "--port", "0"]
    server = subprocess.Popen(
        command, cwd=tmp_path, env=clean, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        ask = {"prompts": ["def read", "import os, sys"], "tokens": 8, "seed": 3}
        texts = post(address, ask)["texts"]
        more = post(address, {**ask, "prompts": ["def read"]})["texts"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(address, {"prompts": ["x = " * 50]})
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    assert more == texts[:1]
    assert "shorten it" in json.loads(refused.value.read())["error"]
    options = ["--prompt", "def read", "--prompt", "import os, sys", "--tokens", 8]
    said = ended(start("generate", whole.output, *options, "--seed", 3))
    assert said.split("\n---\n")[:2] == texts


def post(address: str, body: dict[str, Any]) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, json.dumps(body).encode(), timeout=HANGS) as answer:
        return json.loads(answer.read())


@pytest.mark.weekly
@pytest.mark.parametrize("layout", ["data", "fsdp", "fsdp+tensor"])
def test_two_processes_of_four_devices_train_the_same_model(
    layout: str, whole: Any, config: Any
):
    places = ["--data", config.data, "--corpus", config.corpus]
    options = ["--output", config.output, "--parallel", layout]
    many = ["--processes", 2, "--devices", 4, "lm.train"]
    ended(start("launch", *many, *SIZE, *places, *options))
    assert losses(config.output) == pytest.approx(losses(whole.output), rel=1e-4)


@pytest.mark.weekly
def test_written_on_eight_devices_it_goes_on_with_one_and_four(whole: Any, config: Any):
    ended(train(config, "--parallel", "fsdp", devices=8))
    for devices in (1, 4):
        shutil.rmtree(Path(config.output) / "checkpoints" / "12")
        out = ended(train(config, "--parallel", "fsdp", devices=devices))
        assert "Going on after step 8" in out
        assert losses(config.output) == pytest.approx(losses(whole.output), rel=1e-4)


@pytest.mark.weekly
def test_two_processes_save_on_sigterm_and_go_on(whole: Any, config: Any):
    places = ["--data", config.data, "--corpus", config.corpus]
    many = ["--processes", 2, "--devices", 4, "lm.train"]
    options = [*many, *SIZE, *places, "--output", config.output]
    running = start("launch", *options)
    while not checkpoints(config.output) and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    ended(running)
    ended(start("launch", *options))
    assert losses(config.output) == pytest.approx(losses(whole.output), rel=1e-4)


# --- Baselines and tables -------------------------------------------------------------


def test_kneser_ney_gives_probabilities_that_know_the_text():
    from lm import baselines

    known = b"the cat sat on the mat and the rat sat on the cat. " * 3
    for before in (b"the ", b"xyz ", b"sat o"):
        parts = {str(i): before + bytes([i]) for i in range(256)}
        found = baselines.kneser_ney(known, parts, highest=4)
        for order in (1, 2, 3, 4):
            shares = [2.0 ** -found[name][order][-1] for name in parts]
            assert sum(shares) == pytest.approx(1, abs=1e-6)
    bits = baselines.kneser_ney(known, {"held": b"the rat sat on the mat"}, highest=4)
    means = [bits["held"][order].mean() for order in (1, 2, 3, 4)]
    assert min(means) < means[0] - 1
    assert 3 < means[0] < 8


def test_bits_a_byte_count_each_token_once(config: Any, prepared: dict, model: Any):
    """Those of a model without preference, and of windows evaluated one by one."""
    import jax
    from flax import nnx
    from lm import corpus, evaluate

    tokenizer = corpus.tokenizer_of(config.corpus, prepared["tokenizer"])
    sizes = corpus.bytes_of_tokens(tokenizer)
    ids = evaluate.load_ids(config, "validation")[:150]
    lengths = sizes[ids[1:]]
    none = jax.tree.map(lambda leaf: 0 * leaf, model.params)
    for stride in (16, 32):
        values = evaluate.nats(config, model.graph, none, ids, stride)
        uniform = len(values) * np.log2(config.vocab) / lengths.sum()
        assert evaluate.bits(values, lengths) == pytest.approx(uniform, rel=1e-5)
    values = evaluate.nats(config, model.graph, model.params, ids, 16)
    plain = jax.tree.map(np.asarray, nnx.to_pure_dict(model.params))
    for start in (0, 16, 96):
        window = ids[None, start : start + 33].astype(np.int32)
        logits = lm_numpy.logits(plain, window[:, :-1], config.heads)[0]
        wanted = -np.log(lm_numpy.softmax(logits)[np.arange(32), window[0, 1:]])
        first = 0 if start == 0 else 16
        np.testing.assert_allclose(
            values[start + first : start + 32], wanted[first:], rtol=1e-4
        )


def test_discounts_are_those_of_chen_and_goodman():
    """Of counts 1, 2, 3 and 4 there are four, three, two and one."""
    from lm import baselines

    counts = np.repeat([1, 2, 3, 4], [4, 3, 2, 1])
    level = baselines.Level(np.arange(10, dtype=np.uint64), counts)
    y = 4 / (4 + 2 * 3)
    wanted = [0, 1 - 2 * y * 3 / 4, 2 - 3 * y * 2 / 3, 3 - 4 * y * 1 / 2]
    np.testing.assert_allclose(level.discounts, wanted)


@pytest.mark.parametrize("name", ["xz", "zstd"])
def test_a_compressor_is_charged_for_what_is_new(name: str):
    from lm import baselines

    if name == "zstd" and not shutil.which("zstd"):
        pytest.skip("zstd is not installed")
    bits = functools.partial(baselines.added_bits, getattr(baselines, name))

    known = np.random.default_rng(0).integers(0, 256, 20_000, np.uint8).tobytes()
    new = np.random.default_rng(1).integers(0, 256, 20_000, np.uint8).tobytes()
    assert bits(known, known) < 0.2
    assert 7.9 < bits(known, new) < 8.2
    assert 7.9 < bits(b"", known) < 8.2


#: A line of the package, the same line wrong, and the test that has to fail then.
BREAKS = [
    ("baselines", "y = of[0]", "y = 2 * of[0]", "discounts"),
    ("baselines", "* shares\n", "* 0.5 * shares\n", "kneser_ney_gives"),
    ("baselines", "(train + test)) - before", "(train + test))", "a_compressor"),
    ("evaluate", "0 if start == 0 else size - stride", "0", "bits_a_byte"),
    ("evaluate", "rows[:, 1:])", "rows[:, :-1])", "bits_a_byte"),
    ("evaluate", "/ math.log(2)", "", "bits_a_byte"),
    ("text", "covered[starts] += 1", "covered[starts + 1] += 1", "passages_seen"),
    ("train", "6 * weights + 6", "2 * weights + 6", "operations_a_token"),
    ("loader", "range(process * own, (process + 1) * own)", "range(own)", "no_two"),
]


@pytest.mark.weekly
@pytest.mark.parametrize(("module", "right", "wrong", "test"), BREAKS)
def test_a_broken_baseline_or_metric_is_seen(
    module: str,
    right: str,
    wrong: str,
    test: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
):
    broken = importlib.import_module(f"lm.{module}")
    source = inspect.getsource(broken)
    assert source.count(right) == 1
    [check] = [f for name, f in globals().items() if name.startswith(f"test_{test}")]
    given = inspect.signature(check).parameters
    fixtures = {
        parameter: "xz" if parameter == "name" else request.getfixturevalue(parameter)
        for parameter in given
    }
    check(**fixtures)
    names = {"__name__": broken.__name__, "__package__": "lm"}
    exec(compile(source.replace(right, wrong), module, "exec"), names)
    for name in vars(broken).keys() & names.keys() - {"__name__", "__package__"}:
        monkeypatch.setattr(broken, name, names[name])
    with pytest.raises(AssertionError):
        check(**fixtures)


def test_the_tables_are_those_of_the_runs_that_are_kept():
    for name, table in lm_figures.tables().items():
        assert (lm_figures.FOLDER / name).read_text() == table


def test_processes_found_the_losses_of_one_device():
    kept = json.loads((lm_figures.FOLDER / "processes.json").read_text())
    one, *others = kept.values()
    assert len(others) == 2
    for losses in others:
        assert losses == pytest.approx(one, rel=1e-4)


def test_the_prediction_follows_from_the_smaller_sizes():
    kept, foretold = (
        json.loads((lm_figures.FOLDER / f"{name}.json").read_text())
        for name in ("runs", "prediction")
    )
    sizes = [lm_figures.named(kept, n) for n in "ABCD"]
    tokens = [lm_figures.tokens(run) for run, *_ in sizes]
    assert tokens == [tokens[0] * 2**i for i in range(4)]
    smaller = [run for n in "ABC" for run in lm_figures.named(kept, n)]
    [largest] = lm_figures.named(kept, "D")
    assert lm_figures.operations(largest) == foretold["operations"]
    predicted = lm_figures.predict(smaller, foretold["operations"])
    assert predicted == pytest.approx(foretold["bits a byte"])
    assert predicted - largest["results"]["test"] == pytest.approx(0.1, abs=0.05)


def test_the_chapter_says_who_wins():
    kept = json.loads((lm_figures.FOLDER / "runs.json").read_text())
    [largest] = lm_figures.named(kept, "D")
    model, beside = largest["results"]["test"], kept["baselines"]
    assert beside["xz, after the training text"] < model - 0.1
    gpu = json.loads((lm_figures.FOLDER / "gpu.json").read_text())
    assert gpu["results"]["test"] < min(beside.values()) - 0.2
    assert lm_figures.tokens(gpu) / gpu["results"]["tokens a second"] < 60
    assert gpu["results"]["weights"] > 4.5 * largest["results"]["weights"]
    assert lm_figures.tokens(gpu) > 7 * lm_figures.tokens(largest)
    seeds = [run["results"]["test"] for run in lm_figures.named(kept, "B")]
    assert abs(beside["Kneser-Ney, 8 bytes"] - model) < max(seeds) - min(seeds)
    more_heads = [run["results"]["test"] for run in lm_figures.named(kept, "kv")]
    added = sorted(b - a for a, b in zip(seeds, more_heads, strict=True))
    assert added[0] < -0.05 < -0.01 < added[1] < added[2] < 0


# --- Bad input ------------------------------------------------------------------------


def refusal(call: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(SystemExit) as stopped:
        call(*args, **more)
    said = str(stopped.value.code)
    assert "\n" not in said
    return said


def test_a_folder_without_text(tmp_path: Path):
    from lm import text

    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    said = refusal(text.read_folder, str(tmp_path))
    assert (
        said
        == f"{tmp_path} holds no text in UTF-8: give --data a folder of text files."
    )
    assert "is not a folder" in refusal(text.read_folder, str(tmp_path / "none"))


def test_a_corpus_of_other_text(config: Any, prepared: dict, tmp_path: Path):
    from dataclasses import replace

    from lm import corpus

    before = (Path(config.corpus) / "corpus.json").read_bytes()
    said = refusal(corpus.prepare, replace(config, vocab=290))
    assert said.startswith(f"{config.corpus} holds the tokens of other text")
    assert (Path(config.corpus) / "corpus.json").read_bytes() == before


def test_a_tokenizer_that_is_not_the_models(
    config: Any, prepared: dict, tmp_path: Path
):
    from dataclasses import replace

    from lm import corpus

    (tmp_path / "tokenizer.json").write_text("{}")
    said = refusal(corpus.tokenizer_of, tmp_path, prepared["tokenizer"])
    assert said.endswith(
        "is not the tokenizer that this model was trained with: restore it."
    )
    said = refusal(corpus.tokenizer_of, tmp_path / "none", prepared["tokenizer"])
    assert said.startswith(f"There is no {tmp_path}/none/tokenizer.json")
    # A training asks before it begins.
    shutil.copytree(config.corpus, tmp_path / "corpus")
    (tmp_path / "corpus" / "tokenizer.json").write_text("{}")
    said = refusal(corpus.prepare, replace(config, corpus=str(tmp_path / "corpus")))
    assert said.endswith("was trained with: restore it.")


@pytest.mark.parametrize(
    ("devices", "more", "says"),
    [
        (3, {}, "16 sequences do not divide over 3 devices"),
        (3, {"parallel": "tensor"}, "3 devices do not divide by --tensor 2"),
        (8, {"parallel": "tensor", "tensor": 4}, "--kv_heads 2 do not divide by"),
    ],
)
def test_devices_that_do_not_divide(devices: int, more: dict, says: str):
    from lm import parallel
    from lm.config import Config

    assert refusal(parallel.make_mesh, Config(**TINY, **more), devices).startswith(says)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"heads": 3, "kv_heads": 2}, "--width 32 is not divisible"),
        ({"kv_heads": 3}, "--heads 4 is not divisible by --kv_heads 3"),
        ({"batch": 12}, "--batch 12 is not divisible by 8"),
        ({"steps": 0}, "--steps has to be at least 1"),
        ({"seed": -1}, "--seed has to be from 0"),
        ({"vocab": 256}, "--vocab 256 has to be from 257"),  # no token for each byte
        ({"vocab": 2**16 + 1}, "--vocab 65537 has to be from 257"),  # beyond uint16
        ({"rate": 0.0}, "--rate has to be above 0"),
        ({"rate": float("inf")}, "--rate has to be above 0, and finite"),
        ({"threads": -1}, "--threads has to be at least 0"),
    ],
)
def test_sizes_that_do_not_fit(more: dict, says: str):
    from lm.config import Config

    assert refusal(Config, **{**TINY, **more}).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("steps = ", "Cannot read"),
        ("stepz = 3", "no option is called stepz"),
        ("steps = 'many'", "steps = 'many' has to be of type int"),
        ("remat = 'some'", "remat has to be one of"),
    ],
)
def test_a_file_of_options(text: str, says: str, tmp_path: Path):
    from lm import config

    path = tmp_path / "own.toml"
    path.write_text(text)
    given = config.parser("").parse_args(["--config", str(path)])
    assert says in refusal(config.from_options, given)
    path.write_text("steps = 7\nwidth = 96\n")
    given = config.parser("").parse_args(["--config", str(path), "--steps", "9"])
    assert (config.from_options(given).steps, config.from_options(given).width) == (
        9,
        96,
    )


@pytest.mark.parametrize("rate", ["nan", "inf", "0"])
def test_adapters_need_a_rate(rate: str, monkeypatch: pytest.MonkeyPatch):
    from lm import adapt

    monkeypatch.setattr("sys.argv", ["adapt", "run", "--rate", rate])
    assert refusal(adapt.main) == "--rate has to be above 0, and finite"


def test_a_prompt_that_does_not_fit(config: Any, prepared: dict):
    from lm import corpus, generate

    tokenizer = corpus.tokenizer_of(config.corpus, prepared["tokenizer"])
    said = refusal(generate.encode, tokenizer, ["import x\n" * 20], 32, 8)
    assert "more than the context of 32: shorten it" in said
    said = refusal(generate.encode, tokenizer, ["a", "b\udcff"], 32, 8)
    assert said == "The prompt 'b\\udcff' is not UTF-8: give text."


def test_nothing_to_generate_from(tmp_path: Path):
    from lm import evaluate

    assert refusal(evaluate.load, tmp_path).startswith(f"{tmp_path} holds no run")
    (tmp_path / "config.json").write_text('{"vocab": ')
    said = refusal(evaluate.load, tmp_path)
    assert said.startswith(f"Cannot read {tmp_path}/config.json")


def test_a_damaged_checkpoint(whole: Any, tmp_path: Path):
    from lm import evaluate

    run = Path(shutil.copytree(whole.output, tmp_path / "run"))
    files = [path for path in (run / "checkpoints" / "12").rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.stat().st_size)[-3:]:
        path.write_bytes(path.read_bytes()[:100])
    said = refusal(evaluate.load, run)
    assert said.startswith(f"Cannot read {run}/checkpoints/12: ")
    shutil.rmtree(run / "checkpoints" / "12")
    assert weights(run) != weights(whole.output)
