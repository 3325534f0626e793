"""The language model of `examples/lm`: its parts, and whole runs that are stopped."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations, count
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from justafter import watch

from . import lm_figures, lm_numpy
from .conftest import HANGS, as_bytes, load, program
from .figures import EXAMPLES, ROOT
from .lm_figures import TINY, losses, metrics, options_of


class Lazy:
    """The modules of the package, imported when a test first needs them."""

    def __getattr__(self, name: str) -> ModuleType:
        if name.startswith("_"):
            raise AttributeError(name)
        setattr(self, name, load(f"lm.{name}"))
        return getattr(self, name)


lm = Lazy()


@pytest.fixture(autouse=True)
def usual_sigterm() -> Iterator[None]:
    """A training in this process takes over the signal, and would keep it."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("text")
    lm_figures.copy_small_modules(place)
    return place


def configured(folder: Path, output: Path) -> Any:
    places = {"data": str(folder), "corpus": str(folder.with_name("corpus"))}
    return lm.config.Config(**TINY, **places, output=str(output))


@pytest.fixture
def config(folder: Path, tmp_path: Path) -> Any:
    return configured(folder, tmp_path / "run")


@pytest.fixture
def prepared(config: Any) -> dict[str, Any]:
    return lm.corpus.prepare(config)


#: No file can grow beyond 60,000 bytes, as on a disk that is full.
SMALL_FILES = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def start(module: str, *options: object) -> subprocess.Popen:
    """Start a module of the package as a reader would, in `examples`."""
    return program(EXAMPLES, "-m", f"lm.{module}", *map(str, options))


def ended(running: subprocess.Popen, status: int = 0) -> str:
    """What a program printed; on stderr, where it failed."""
    try:
        out, err = running.communicate(timeout=HANGS)
    finally:
        running.kill()
    assert running.returncode == status, f"{out}\n{err}"
    return err if status else out


def run_of(config: Any) -> list[str]:
    places = {name: getattr(config, name) for name in ("data", "corpus", "output")}
    return options_of({**TINY, **places})


def train(config: Any, *options: object) -> subprocess.Popen:
    return start("train", *run_of(config), *options)


def steps(run: str) -> tuple[list[int], list[int]]:
    """The steps that a run noted: in its lines, and for TensorBoard."""
    return [line["step"] for line in metrics(run)], [step for step, _ in board(run)]


# --- Text, tokens, batches ------------------------------------------------------------


def test_near_copies_are_left_out(folder: Path):
    texts = lm.text.read_folder(str(folder))
    assert lm.text.without_copies(texts).keys() <= texts.keys()
    longest = max(texts, key=lambda name: len(texts[name]))
    copies = {**texts, "copy.py": texts[longest].replace("self", "me")[:-300]}
    kept = lm.text.without_copies(copies)
    assert "copy.py" not in kept
    assert longest in kept


def test_a_file_keeps_its_side_when_others_come():
    texts = {f"{i}.py": "text" for i in range(400)}
    some = dict(list(texts.items())[100:])
    before, after = lm.text.split(some), lm.text.split(texts)
    assert sorted(name for names in after.values() for name in names) == sorted(texts)
    shares = {part: len(names) / 400 for part, names in after.items()}
    wanted = {"train": 0.9, "validation": 0.05, "test": 0.05}
    assert shares == pytest.approx(wanted, abs=0.03)
    for part, names in before.items():
        assert set(names) <= set(after[part])


def test_passages_seen_before_are_those_that_python_finds():
    rng = np.random.default_rng(0)
    known = bytes(rng.integers(97, 123, 4000, np.uint8))
    new = bytes(rng.integers(97, 123, 500, np.uint8))
    held = new[:200] + known[1000:1080] + new[200:] + known[50:90]
    covered = lm.text.seen_before(held, lm.text.passages(known))
    wanted = np.zeros(len(held), bool)
    for i in range(len(held) - lm.text.WINDOW + 1):
        if held[i : i + lm.text.WINDOW] in known:
            wanted[i : i + lm.text.WINDOW] = True
    np.testing.assert_array_equal(covered, wanted)
    assert covered.sum() == 80


def test_training_text_loses_what_it_shares_with_held_out_text(folder: Path):
    texts = lm.text.read_folder(str(folder))
    before = {
        part: lm.text.joined({name: texts[name] for name in names})
        for part, names in lm.text.split(lm.text.without_copies(texts)).items()
    }
    parts = lm.text.parts(texts)
    after = {part: lm.text.joined(texts) for part, texts in parts.items()}
    for part in ("validation", "test"):
        assert after[part] == before[part]
        shared, left = (
            lm.text.seen_before(after[part], lm.text.passages(parts["train"])).mean()
            for parts in (before, after)
        )
        assert left < 0.01 < shared
    lines = {line for each in texts.values() for line in each.splitlines()}
    kept = after["train"].decode().splitlines()
    assert set(kept) <= lines
    assert 0.5 < len(after["train"]) / len(before["train"]) < 1


def test_tokens_give_the_text_back_and_count_its_bytes(config: Any, prepared: dict):
    tokenizer = lm.corpus.tokenizer_of(config.corpus, prepared["tokenizer"])
    sizes = lm.corpus.bytes_of_tokens(tokenizer)
    texts = lm.text.read_folder(config.data)
    for given in [*texts.values(), "ü → \t\r\n 漢字\x00"]:
        ids = tokenizer.encode(given).ids
        assert tokenizer.decode(ids) == given
        assert sizes[ids].sum() == len(given.encode())
    for part in ("validation", "test"):
        ids = np.load(Path(config.corpus) / f"{part}.npy")
        assert sizes[ids].sum() == prepared["bytes"][part]


def test_processes_read_their_rows_of_the_same_batches(config: Any, prepared: dict):
    whole = lm.loader.batches(config)
    parts = [lm.loader.batches(config, i, 2) for i in range(2)]
    for _ in range(20):
        halves = [next(part) for part in parts]
        np.testing.assert_array_equal(np.concatenate(halves, axis=1), next(whole))
    state, after = whole.get_state(), [next(whole) for _ in range(3)]
    again = lm.loader.batches(config)
    again.set_state(state)
    np.testing.assert_array_equal([next(again) for _ in range(3)], after)
    other = lm.loader.batches(config, 1, 2)
    other.set_state(state)  # of one process, for the second of two
    np.testing.assert_array_equal(next(other), after[0][:, config.batch // 2 :])


def test_a_batch_of_one_row_a_shard(config: Any, prepared: dict):
    rows = next(lm.loader.batches(replace(config, batch=config.shards)))
    assert rows.shape == (1, config.shards, config.context + 1)


def test_one_head_of_keys_on_a_mesh(model: Any):
    _, [value], _ = lm_figures.train_tiny(1, kv_heads=1, remat="none")
    assert value == pytest.approx(np.log(model.config.vocab), rel=0.05)


def test_no_two_processes_see_the_same_document(config: Any, prepared: dict):
    shards = prepared["documents of shards"]
    names = [name for shard in shards for name in shard]
    assert sorted(names) == sorted(prepared["files"]["train"])

    tokenizer = lm.corpus.tokenizer_of(config.corpus, prepared["tokenizer"])
    encode = partial(lm.corpus.encode, tokenizer)
    texts = lm.text.parts(lm.text.read_folder(config.data))["train"]
    for process in range(2):
        own = range(process * 4, process * 4 + 4)
        names = [name for i in own for name in shards[i]]
        paths = [Path(config.corpus) / f"train-{i}.bin" for i in own]
        files = [lm.loader.on_disk(path) for path in paths]
        wanted = np.concatenate([encode([texts[name]]) for name in names])
        np.testing.assert_array_equal(np.concatenate(files), wanted)
        # The rows of a process are windows of these shards, and of no other.
        cuts = [lm.loader.Windows(tokens, config.context) for tokens in files]
        windows = {cut[i].tobytes() for cut in cuts for i in range(len(cut))}
        read = lm.loader.batches(config, process, 2)
        for _ in range(len(windows) // (config.batch // 2)):
            rows = next(read).reshape(-1, config.context + 1)
            assert {row.tobytes() for row in rows} <= windows
        # In one epoch of a shard, each of its windows comes once.
        first = lm.loader.Windows(files[0], config.context)
        rows = lm.loader.shard(paths[0], config, own[0])
        epochs = [
            np.concatenate([rows[i].reshape(-1, config.context + 1) for i in some])
            for some in (range(len(first) // 2), range(len(first) // 2, len(first)))
        ]
        seen = {row.tobytes() for epoch in epochs for row in epoch}
        assert seen == {first[i].tobytes() for i in range(len(first))}


def test_a_thousand_times_the_data_takes_no_longer(tmp_path: Path):
    few, many = lm_figures.seconds_a_batch(tmp_path).values()
    assert sum(p.stat().st_blocks * 512 for p in tmp_path.rglob("*")) < 10_000_000
    assert many < 3 * few + 5e-4


# --- The model ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> Any:
    config = lm.config.Config(**TINY)
    graph, init = lm.model.create(config)
    params = jax.jit(init)(jax.random.key(0))
    plain = jax.tree.map(np.asarray, lm.model.nnx.to_pure_dict(params))
    parts = {"graph": graph, "params": params, "config": config}
    return SimpleNamespace(**parts, plain=plain)


def some_tokens(rows: int, length: int) -> np.ndarray:
    return np.random.default_rng(1).integers(1, 300, (rows, length), np.int32)


def test_the_same_model_in_plain_numpy_has_the_slopes_of_the_gradient(model: Any):
    """Of each array of weights, along random directions.

    So it has the same logits as well, and no token sees a later one.
    """
    rows, rng = some_tokens(2, 33), np.random.default_rng(0)
    value, grads = jax.jit(jax.value_and_grad(partial(lm.train.loss, model.graph)))(
        model.params, rows
    )
    leaves, tree = jax.tree.flatten(jax.tree.map(np.float64, model.plain))

    def loss(place: int, change: Any) -> float:
        moved = [*leaves[:place], leaves[place] + change, *leaves[place + 1 :]]
        return lm_numpy.loss(jax.tree.unflatten(tree, moved), rows, model.config.heads)

    assert loss(0, 0.0) == pytest.approx(float(value), rel=1e-5)
    slopes = jax.tree.leaves(lm.model.nnx.to_pure_dict(grads))
    for place, grad in enumerate(map(np.float64, slopes)):
        size = np.linalg.norm(grad)
        assert size > 0
        for way in rng.normal(size=(4, *grad.shape)):
            slope = (loss(place, 1e-5 * way) - loss(place, -1e-5 * way)) / 2e-5
            assert slope == pytest.approx((grad * way).sum(), abs=1e-3 * size)


def test_operations_a_token_are_those_that_xla_counts(model: Any):
    """Of a forward pass, a third of all; XLA counts a loop's body once, so one layer.

    It also counts what is no product, and both halves of the masked attention.
    """
    config = replace(model.config, layers=1, width=128, context=64)
    graph, init = lm.model.create(config)
    params = jax.jit(init)(jax.random.key(0))
    tokens = some_tokens(2, 64)
    forward = jax.jit(lambda p, x: lm.model.nnx.merge(graph, p)(x)[0])
    counted = forward.lower(params, tokens).compile().cost_analysis()["flops"]
    ours = lm.train.flops_a_token(config, params) / 3 * tokens.size
    assert 0.8 < ours / counted < 1


def test_remat_keeps_less_for_the_backward_pass(model: Any):
    saved = []
    for remat in ("none", "dots", "all"):
        graph, _ = lm.model.create(replace(model.config, remat=remat))
        forward = partial(jax.vjp, partial(lm.train.loss, graph))
        _, back = jax.eval_shape(forward, model.params, some_tokens(16, 33))
        leaves = jax.tree.leaves(back)
        saved.append(sum(leaf.size * leaf.dtype.itemsize for leaf in leaves))
    none, dots, everything = saved
    assert none > 1.5 * dots > 1.5 * everything


def test_a_report_counts_the_bytes_and_collectives_of_a_step(model: Any):
    state, _, step = lm_figures.train_tiny(1)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    report = lm.parallel.report(step)
    assert report["donated"] == size
    assert report["arguments"] == size + some_tokens(16, 33).nbytes
    assert 0 < report["results"] - size < 1000  # the loss, and a table of pointers
    logits = 4 * some_tokens(16, 32).size * model.config.vocab
    assert report["temporaries"] > logits > size
    text = """
        a = f32[8]{0} all-gather(x), metadata={op_name="all-to-all"}
        b = (f32[1]{0}, f32[8]{0}) all-gather-start(x)
        c = f32[8]{0} all-gather-done(b)
        d = f32[] all-reduce(y), to_apply=add
    """
    memory = step.memory_analysis()
    fake = SimpleNamespace(memory_analysis=lambda: memory, as_text=lambda: text)
    counted = lm.parallel.report(fake)["collectives"]
    assert counted == {"all-gather": 2, "all-reduce": 1}


def largest_difference(a: Any, b: Any) -> float:
    apart = jax.tree.map(lambda x, y: np.abs(x - y).max(initial=0), a, b)
    return max(map(float, jax.tree.leaves(apart)))


@pytest.mark.weekly
def test_parts_of_a_batch_change_nothing():
    """Adam's first moment is a tenth of the gradient, clipped to a norm of one."""
    state, [value], _ = lm_figures.train_tiny(1)
    other, [loss], _ = lm_figures.train_tiny(1, accumulate=2, remat="none")
    assert loss == pytest.approx(value, rel=1e-5)
    assert largest_difference(state["opt_state"], other["opt_state"]) < 1e-6


@pytest.mark.weekly
def test_every_layout_has_the_losses_of_one_device():
    code = "import json; from tests.examples.lm_figures import layouts as each"
    found = json.loads(ended(program(ROOT, "-c", f"{code}; print(json.dumps(each()))")))
    one, half = found["one device"], found["one device, bfloat16"]
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
    assert half["arguments"] == one["arguments"]
    assert half["losses"] != one["losses"]
    assert one["collectives"] == {}
    assert set(found["data"]["collectives"]) == {"all-reduce"}
    assert found["fsdp"]["collectives"]["all-gather"] >= 8


# --- Writing, exporting, serving, adapting --------------------------------------------


def test_the_cache_changes_nothing_and_two_functions_do_everything(model: Any):
    tokens, lengths = some_tokens(3, 32), np.array([4, 9, 1], np.int32)
    prefill, step = lm.generate.compiled(model.graph)
    how = 12, 7, 1.0, 0.9
    with watch() as log:
        cached = lm.generate.write(prefill, step, model.params, tokens, lengths, *how)
        for seed in (1, 2):
            other = 9, seed, 0.5, 1
            lm.generate.write(prefill, step, model.params, tokens, lengths, *other)
    counts = {record.name: record.compilations for record in log.records}
    assert counts == {"prefill": 1, "step": 1}
    plain = lm.generate.write_uncached(model.graph, model.params, tokens, lengths, *how)
    for one, other, n in zip(cached, plain, lengths, strict=True):
        np.testing.assert_array_equal(one, other)
        assert len(one) == n + 11
    alone = lm.generate.write(
        prefill, step, model.params, tokens[:1], lengths[:1], *how
    )
    np.testing.assert_array_equal(alone[0], cached[0])
    drawn = np.arange(3, dtype=np.uint32), np.float32(1.0), np.float32(0.9)
    token, cache = prefill(model.params, tokens, lengths, *drawn)
    step(model.params, cache, token, lengths, *drawn)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(cache)), "updated in place"
    jax.clear_caches()


def test_only_likely_tokens_are_drawn():
    logits = jnp.log(jnp.tile(jnp.array([0.1, 0.6, 0.3]), (400, 1)))
    seeds, place = np.arange(400, dtype=np.uint32), np.full(400, 3)
    draw = partial(lm.generate.draw, logits, seeds, place)
    for heat, top_p, wanted in ((1.0, 0.5, {1}), (1.0, 0.8, {1, 2}), (0.0, 1.0, {1})):
        assert set(np.asarray(draw(heat, top_p)).tolist()) == wanted
    shares = np.bincount(draw(1.0, 1.0)) / 400
    np.testing.assert_allclose(shares, [0.1, 0.6, 0.3], atol=0.1)
    assert shares.min() > 0


@pytest.mark.weekly
def test_adapters_change_nothing_at_first_and_then_learn(model: Any):
    ids, merge = np.tile(some_tokens(1, 50)[0], 20), lm.adapt.merge
    first = lm.adapt.init(jax.random.key(0), model.params, 4, lm.adapt.is_layer)
    assert largest_difference(merge(first, model.params), model.params) == 0
    how = {"rank": 4, "steps": 30, "rate": 0.01, "seed": 0}
    adapters, count = lm.adapt.fit(model.config, model.graph, model.params, ids, **how)
    assert 0 < count < sum(x.size for x in jax.tree.leaves(model.params)) / 3
    rows = np.stack([ids[i : i + 33] for i in range(16)])
    value = jax.jit(lm.train.loss, static_argnums=0)
    before = value(model.graph, model.params, rows)
    assert value(model.graph, merge(adapters, model.params), rows) < before - 0.2


# --- Whole runs -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def timed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, float]:
    """A run that nobody stopped, and its seconds from the first loss to the end."""
    config = configured(folder, tmp_path_factory.mktemp("whole") / "run")
    running = train(config)
    wait_for_a_loss(running, config)
    began = time.monotonic()
    ended(running)
    return config, time.monotonic() - began


@pytest.fixture(scope="module")
def whole(timed: tuple[Any, float]) -> Any:
    return timed[0]


def checkpoints(run: str | Path) -> set[int]:
    names = (path.name for path in Path(run, "checkpoints").glob("*"))
    return {int(name) for name in names if name.isdigit()}


def test_a_run_says_what_it_measured(whole: Any):
    run = Path(whole.output)
    events = metrics(run)
    assert events[0]["donated"] > 0.99 * events[0]["results"]
    assert [event["step"] for event in events if "loss" in event] == list(range(1, 13))
    assert losses(run)[-1] < losses(run)[0] - 0.2
    assert [e["step"] for e in events if "validation_bits_a_byte" in e] == [6, 12]
    found = json.loads((run / "results.json").read_text())
    assert found["share of the roof"] > 0  # measured, so a busy machine may exceed one
    assert 0 < found["test"] < 8
    assert checkpoints(run) == {8, 12}


@pytest.mark.weekly
def test_speed_and_roof_by_a_clock_that_is_known(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Read for the n-th time it says n * n: the steps take 1, 5 and 9 seconds."""
    config = replace(configured(folder, Path(mkdtemp(dir=tmp_path))), steps=3)
    clock = SimpleNamespace(perf_counter=(n * n for n in count()).__next__)
    for function in (lm.train.train, lm.train.roof):
        monkeypatch.setitem(function.__globals__, "time", clock)
    found = lm.train.train(config)
    assert found is not None
    a_step = config.batch * config.context
    speeds = [line["tokens_a_second"] for line in metrics(config.output)[1:]]
    assert speeds == pytest.approx([a_step / seconds for seconds in (1, 5, 9)])
    assert found["tokens a second"] == pytest.approx(a_step / 5)
    # Its fastest product begins at the eighth reading; the sixth ended the last step.
    top = 2 * 1024**3 / (8 * 8 - 7 * 7)
    flops = lm.train.flops_a_token(config, lm.evaluate.load(config.output)[2])
    share = found["tokens a second"] * flops / top
    assert found["share of the roof"] == pytest.approx(share)


def board(run: str) -> list[tuple[int, dict[str, float]]]:
    """The steps and numbers of a run's file of events, its checksums tested."""
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

    def fields(data: bytes) -> list[tuple[int, Any]]:
        known = UnknownFieldSet(Empty.FromString(data))
        return [(field.field_number, field.data) for field in known]

    data, found = Path(run, "events.out.tfevents.lm").read_bytes(), []
    while data:
        size = int.from_bytes(data[:8], "little")
        message = data[12 : 12 + size]
        assert data[8:12] == lm.events.checksum(data[:8])
        assert data[12 + size : 16 + size] == lm.events.checksum(message)
        data, event = data[16 + size :], dict(fields(message))
        if 3 in event:
            assert event[3] == b"brain.Event:2"
            continue
        values = [dict(fields(value)) for _, value in fields(event[5])]
        numbers = np.array([v[2] for v in values], np.uint32).view(np.float32)
        names = [v[1].decode() for v in values]
        found.append((event[2], dict(zip(names, numbers, strict=True))))
    return found


def test_tensorboard_reads_what_the_lines_say(whole: Any):
    # Examples of RFC 3720, and of the documentation of Protocol Buffers.
    assert lm.events.crc32c(bytes(32)) == 0x8A9136AA
    assert lm.events.crc32c(b"123456789") == 0xE3069283
    assert [lm.events.varint(n) for n in (1, 300)] == [b"\x01", b"\xac\x02"]
    wanted = [
        (line.pop("step"), {n: x for n, x in line.items() if n != "collectives"})
        for line in metrics(whole.output)
    ]
    found = board(whole.output)
    assert [step for step, _ in found] == [step for step, _ in wanted]
    for (_, values), (_, numbers) in zip(found, wanted, strict=True):
        assert values == pytest.approx(numbers, rel=1e-6)


def wait_for_a_loss(running: subprocess.Popen, config: Any) -> None:
    """Wait until a run that was just started notes a loss, or ends."""
    metrics, before = Path(config.output, "metrics.jsonl"), None
    while running.poll() is None:
        now = metrics.read_text().count('"loss"') if metrics.exists() else 0
        before = now if before is None else before
        if now > before or (now and before and now < before):
            return
        time.sleep(0.01)


def interrupt(config: Any, number: int, after: float) -> None:
    """Start a run, and send it a signal some seconds after its first loss."""
    running = train(config)
    try:
        wait_for_a_loss(running, config)
        time.sleep(after)
        running.send_signal(number)
        out, err = running.communicate(timeout=HANGS)
    finally:
        running.kill()
    print(f"{after:.3f} s after a loss: {running.returncode} {out.splitlines()[-1:]}")
    if number == signal.SIGTERM and "SIGTERM" in out:
        assert running.returncode == 0, err


#: What the moments are drawn from: another number each time, or that of the variable.
SEED = os.environ.get("MOMENTS_SEED") or str(random.SystemRandom().randrange(10**6))
TIMES = [pytest.param(i, marks=pytest.mark.weekly if i else ()) for i in range(10)]


@pytest.mark.parametrize("i", TIMES)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_terminated_or_killed_it_goes_on_bit_for_bit(name, i, timed, config):
    """Stopped once or, each second time, twice: at random while it trains."""
    print(f"The moments come again with MOMENTS_SEED={SEED}")
    (whole, seconds), drawn = timed, random.Random(f"{SEED} {name} {i}")
    for _ in range(1 + i % 2):
        interrupt(config, signal.Signals[name], drawn.uniform(0, seconds))
    ended(train(config))
    assert losses(config.output) == losses(whole.output)
    ours, theirs = (lm.evaluate.load(each.output)[2] for each in (config, whole))
    assert as_bytes(ours) == as_bytes(theirs)
    assert steps(config.output) == steps(whole.output)


def test_a_run_without_a_checkpoint_notes_everything_anew(whole, config, monkeypatch):
    """And what it evaluated where it was stopped."""
    shutil.copytree(whole.output, config.output)
    shutil.rmtree(Path(config.output) / "checkpoints")
    with monkeypatch.context() as patch:
        patch.setattr(lm.train.Preemption, "at", lambda self, step: step == 6)
        assert lm.train.train(config) is None
    lm.train.train(config)
    assert losses(config.output) == pytest.approx(losses(whole.output), rel=1e-4)
    assert steps(config.output) == steps(whole.output)


def test_another_run_than_the_one_that_was_asked_for(whole: Any):
    before = checkpoints(whole.output)
    said = refusal(lm.train.train, replace(whole, rate=0.1))
    assert said.startswith(f"The run in {whole.output} was made with --rate 0.004: ")
    assert checkpoints(whole.output) == before


@pytest.mark.weekly
def test_a_disk_that_is_full(whole: Any, config: Any):
    first = Path("checkpoints") / "8"
    shutil.copytree(Path(whole.output) / first, Path(config.output) / first)
    command = ("-c", SMALL_FILES, "lm.train", *run_of(config))
    said = ended(program(EXAMPLES, *command), status=1)
    assert said.count("\n") == 1, said
    assert said.startswith(f"Cannot save to {config.output}/checkpoints: ")
    assert "step 8 is whole" in said
    assert checkpoints(config.output) == {8}


def test_a_full_disk_says_which_checkpoint_is_left(tmp_path: Path):
    kind = lm.checkpoint.Checkpoints
    checkpoints = kind.__new__(kind)
    checkpoints.folder = tmp_path
    error = OSError("No space left on device")
    assert "No checkpoint is yet whole: make room" in refusal(checkpoints.full, error)
    (tmp_path / "8").mkdir()
    assert "checkpoint of step 8 is whole" in refusal(checkpoints.full, error)


def test_whoever_reads_its_lines_may_leave(config: Any, monkeypatch):
    def left(line: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(lm.train, "train", left)
    monkeypatch.setattr(sys, "argv", ["train", *run_of(config)])
    assert refusal(lm.train.main).startswith("Nobody reads its lines.")


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
    server = program(tmp_path, "-I", str(place / "serve.py"), "--port", "0")
    try:
        address = server.stdout.readline().split()[-1]
        ask = {"prompts": ["def read", "import os, sys"], "tokens": 8, "seed": 3}
        texts = post(address, ask)["texts"]
        more = post(address, {**ask, "prompts": ["def read"]})["texts"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(address, {"prompts": ["x = " * 50]})
    finally:
        server.kill()
        server.communicate()
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
def test_two_processes_save_on_sigterm_and_go_on(whole: Any, config: Any):
    command = ("launch", "--processes", 2, "--devices", 4, "lm.train", *run_of(config))
    running = start(*command, "--parallel", "fsdp+tensor")
    while not checkpoints(config.output) and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    ended(running)
    ended(start(*command, "--parallel", "fsdp+tensor"))
    assert losses(config.output) == pytest.approx(losses(whole.output), rel=1e-4)


# --- Baselines and tables -------------------------------------------------------------


def test_kneser_ney_gives_probabilities_that_know_the_text():
    known = b"the cat sat on the mat and the rat sat on the cat. " * 3
    for before in (b"the ", b"xyz ", b"sat o"):
        parts = {str(i): before + bytes([i]) for i in range(256)}
        found = lm.baselines.kneser_ney(known, parts, highest=4)
        for order in (1, 2, 3, 4):
            shares = [2.0 ** -found[name][order][-1] for name in parts]
            assert sum(shares) == pytest.approx(1, abs=1e-6)
    bits = lm.baselines.kneser_ney(
        known, {"held": b"the rat sat on the mat"}, highest=4
    )
    means = [bits["held"][order].mean() for order in (1, 2, 3, 4)]
    assert min(means) < means[0] - 1
    assert 3 < means[0] < 8


def test_bits_a_byte_count_each_token_once(config: Any, prepared: dict, model: Any):
    """Those of a model without preference, and of windows evaluated one by one."""
    tokenizer = lm.corpus.tokenizer_of(config.corpus, prepared["tokenizer"])
    sizes = lm.corpus.bytes_of_tokens(tokenizer)
    ids = lm.evaluate.load_ids(config, "validation")[:150]
    lengths = sizes[ids[1:]]
    none = jax.tree.map(lambda leaf: 0 * leaf, model.params)
    for stride in (16, 32):
        values = lm.evaluate.nats(config, model.graph, none, ids, stride)
        uniform = len(values) * np.log2(config.vocab) / lengths.sum()
        assert lm.evaluate.bits(values, lengths) == pytest.approx(uniform, rel=1e-5)
    values = lm.evaluate.nats(config, model.graph, model.params, ids, 16)
    for start in (0, 16, 96):
        window = ids[None, start : start + 33].astype(np.int32)
        logits = lm_numpy.logits(model.plain, window[:, :-1], config.heads)[0]
        wanted = -np.log(lm_numpy.softmax(logits)[np.arange(32), window[0, 1:]])
        first = 0 if start == 0 else 16
        np.testing.assert_allclose(
            values[start + first : start + 32], wanted[first:], rtol=1e-4
        )


def test_discounts_are_those_of_chen_and_goodman():
    """Of counts 1, 2, 3 and 4 there are four, three, two and one."""
    counts = np.repeat([1, 2, 3, 4], [4, 3, 2, 1])
    level = lm.baselines.Level(np.arange(10, dtype=np.uint64), counts)
    y = 4 / (4 + 2 * 3)
    wanted = [0, 1 - 2 * y * 3 / 4, 2 - 3 * y * 2 / 3, 3 - 4 * y * 1 / 2]
    np.testing.assert_allclose(level.discounts, wanted)


@pytest.mark.parametrize("name", ["xz", "zstd"])
def test_a_compressor_is_charged_for_what_is_new(name: str):
    if name == "zstd" and not shutil.which("zstd"):
        pytest.skip("zstd is not installed")
    bits = partial(lm.baselines.added_bits, getattr(lm.baselines, name))
    known = np.random.default_rng(0).integers(0, 256, 20_000, np.uint8).tobytes()
    new = np.random.default_rng(1).integers(0, 256, 20_000, np.uint8).tobytes()
    assert bits(known, known) < 0.2
    assert bits(known + bytes(10_000_000), known) < 0.2  # farther than the text is long
    assert 7.9 < bits(known, new) < 8.2
    assert 7.9 < bits(b"", known) < 8.2


def test_the_tables_are_those_of_the_runs_that_are_kept():
    for name, table in lm_figures.tables().items():
        assert (lm_figures.FOLDER / name).read_text() == table


def test_processes_found_the_losses_of_one_device():
    one, *others = lm_figures.kept("processes").values()
    assert len(others) == 2
    for other in others:
        assert other == pytest.approx(one, rel=1e-4)


def test_the_prediction_follows_from_the_smaller_sizes():
    kept, foretold = map(lm_figures.kept, ("runs", "prediction"))
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
    kept, gpu = map(lm_figures.kept, ("runs", "gpu"))
    [largest] = lm_figures.named(kept, "D")
    model, beside = largest["results"]["test"], kept["baselines"]
    assert beside["xz, after the training text"] < model - 0.1
    assert gpu["results"]["test"] < min(beside.values()) - 0.2
    assert lm_figures.tokens(gpu) / gpu["results"]["tokens a second"] < 60
    assert gpu["results"]["weights"] > 4.5 * largest["results"]["weights"]
    assert lm_figures.tokens(gpu) > 7 * lm_figures.tokens(largest)
    seeds = [run["results"]["test"] for run in lm_figures.named(kept, "B")]
    assert abs(beside["Kneser-Ney, 8 bytes"] - model) < max(seeds) - min(seeds)
    more_heads = [run["results"]["test"] for run in lm_figures.named(kept, "kv")]
    added = sorted(b - a for a, b in zip(seeds, more_heads, strict=True))
    assert added[0] < -0.05 < -0.01 < added[1] < added[2] < 0
    halved = [run["results"]["test"] for run in lm_figures.named(kept, "bf")]
    added = [abs(b - a) for a, b in zip(seeds, halved, strict=True)]
    assert max(added) < min(abs(a - b) for a, b in combinations(seeds, 2))


# --- Bad input ------------------------------------------------------------------------


def refusal(call: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(SystemExit) as stopped:
        call(*args, **more)
    said = str(stopped.value.code)
    assert "\n" not in said
    return said


def test_a_folder_without_text(tmp_path: Path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    said = refusal(lm.text.read_folder, str(tmp_path))
    assert said.startswith(f"{tmp_path} holds no text in UTF-8: give --data a folder")
    assert "is not a folder" in refusal(lm.text.read_folder, str(tmp_path / "none"))


def test_a_corpus_of_other_text(config: Any, prepared: dict, tmp_path: Path):
    before = (Path(config.corpus) / "corpus.json").read_bytes()
    said = refusal(lm.corpus.prepare, replace(config, vocab=290))
    assert said.startswith(f"{config.corpus} holds the tokens of other text")
    assert (Path(config.corpus) / "corpus.json").read_bytes() == before


def test_a_tokenizer_that_is_not_the_models(config, prepared, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    said = refusal(lm.corpus.tokenizer_of, tmp_path, prepared["tokenizer"])
    assert said.endswith("tokenizer that this model was trained with: restore it.")
    said = refusal(lm.corpus.tokenizer_of, tmp_path / "none", prepared["tokenizer"])
    assert said.startswith(f"There is no {tmp_path}/none/tokenizer.json")
    # A training asks before it begins.
    shutil.copytree(config.corpus, tmp_path / "corpus")
    (tmp_path / "corpus" / "tokenizer.json").write_text("{}")
    said = refusal(lm.corpus.prepare, replace(config, corpus=str(tmp_path / "corpus")))
    assert said.endswith("was trained with: restore it.")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"devices": 3}, "16 sequences do not divide over 3 devices"),
        ({"devices": 3, "parallel": "tensor"}, "3 devices do not divide by --tensor 2"),
        (
            {"devices": 8, "parallel": "tensor", "tensor": 4},
            "--kv_heads 2 do not divide by",
        ),
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
    def make(devices: int = 1, **options: Any) -> None:
        lm.parallel.make_mesh(lm.config.Config(**{**TINY, **options}), devices)

    assert refusal(make, **more).startswith(says)


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
    path = tmp_path / "own.toml"
    path.write_text(text)
    given = lm.config.parser("").parse_args(["--config", str(path)])
    assert says in refusal(lm.config.from_options, given)
    path.write_text("steps = 7\nwidth = 96\n")
    given = lm.config.parser("").parse_args(["--config", str(path), "--steps", "9"])
    made = lm.config.from_options(given)
    assert (made.steps, made.width) == (9, 96)


@pytest.mark.parametrize("rate", ["nan", "inf", "0"])
def test_adapters_need_a_rate(rate: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.argv", ["adapt", "run", "--rate", rate])
    assert refusal(lm.adapt.main) == "--rate has to be above 0, and finite"


def test_a_prompt_that_does_not_fit(config: Any, prepared: dict):
    tokenizer = lm.corpus.tokenizer_of(config.corpus, prepared["tokenizer"])
    said = refusal(lm.generate.encode, tokenizer, ["import x\n" * 20], 32, 8)
    assert "more than the context of 32: shorten it" in said
    said = refusal(lm.generate.encode, tokenizer, ["a", "b\udcff"], 32, 8)
    assert said == "The prompt 'b\\udcff' is not UTF-8: give text."


def test_nothing_to_generate_from(tmp_path: Path):
    assert refusal(lm.evaluate.load, tmp_path).startswith(f"{tmp_path} holds no run")
    (tmp_path / "config.json").write_text('{"vocab": ')
    said = refusal(lm.evaluate.load, tmp_path)
    assert said.startswith(f"Cannot read {tmp_path}/config.json")


def test_a_damaged_checkpoint(whole: Any, tmp_path: Path):
    run = Path(shutil.copytree(whole.output, tmp_path / "run"))
    files = [path for path in (run / "checkpoints" / "12").rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.stat().st_size)[-3:]:
        path.write_bytes(path.read_bytes()[:100])
    said = refusal(lm.evaluate.load, run)
    assert said.startswith(f"Cannot read {run}/checkpoints/12: ")
    shutil.rmtree(run / "checkpoints" / "12")
    earlier, last = (lm.evaluate.load(each)[2] for each in (run, whole.output))
    assert as_bytes(earlier) != as_bytes(last)
