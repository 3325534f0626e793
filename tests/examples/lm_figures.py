"""Keep what runs of `examples/lm` gave; make the tables and pictures of its chapter.

`python -m tests.examples.lm_figures RUN ...` keeps finished runs, with the baselines
that `lm.baselines` left in the first. The name of a run is its kind and its seed: sizes
A to D, each trained on twice the text of the one before, and changes of size B. Before
the largest is run, `predict WEIGHTS TOKENS RUN ...` stores what the others foretell;
`layouts`, `processes` and `speed` measure those again, and `loader` times batches.
Without an argument the tables are made again.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .figures import EXAMPLES, KEPT, text_of

FOLDER = KEPT / "lm"
SIZES = ("A", "B", "C", "D")
CHANGES = {
    "kv": "as many heads of keys and values as of queries",
    "bf": "activations in bfloat16",
}
MADE_BY = "# Made by tests/examples/lm_figures.py from the runs that are kept."

SIZES_OF_TINY = {"vocab": 300, "width": 32, "layers": 2, "heads": 4, "kv_heads": 2}
OFTEN = {"steps": 12, "save_every": 4, "eval_every": 6, "log_every": 1}
TINY: dict[str, Any] = {**SIZES_OF_TINY, "context": 32, "compute": "float32", **OFTEN}

#: What makes a step another one, on one device and on eight.
VARIANTS = {
    "one device": {},
    "one device, nothing recomputed": {"remat": "none"},
    "one device, two parts of a batch": {"accumulate": 2},
    "one device, bfloat16": {"compute": "bfloat16"},
    **{name: {"parallel": name} for name in ("data", "fsdp", "tensor", "fsdp+tensor")},
}


def options_of(config: dict[str, Any]) -> list[str]:
    return [
        word for name, value in config.items() for word in (f"--{name}", str(value))
    ]


def train_tiny(steps: int, **options: Any) -> tuple[Any, list[float], Any]:
    """The state after some steps of the smallest model, their losses, and the step."""
    sys.path.insert(0, str(EXAMPLES))
    import jax
    from lm import loader, parallel, train
    from lm.config import Config

    config = Config(**{**TINY, **options})
    mesh = parallel.make_mesh(config, 8 if "parallel" in options else 1)
    rows = np.random.default_rng(1).integers(1, 300, (16, 33), np.int32)
    rows = rows.reshape(config.accumulate, -1, 33)
    with jax.set_mesh(mesh):
        graph, init, abstract = train.make_state(config, mesh)
        shape = train.spec_of_rows(config, mesh)
        step = train.make_step(config, graph).lower(abstract, shape).compile()
        state, losses = init(jax.random.key(0)), []
        for _ in range(steps):
            state, value = step(state, loader.to_devices(rows, mesh))
            losses.append(float(value))
    return jax.device_get(state), losses, step


def layouts() -> dict[str, Any]:
    """For each variant the losses of three steps, bytes and collectives."""
    sys.path.insert(0, str(EXAMPLES))
    import jax
    from lm import parallel

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    found = {}
    for name, options in VARIANTS.items():
        _, losses, step = train_tiny(3, **options)
        found[name] = {"losses": losses, **parallel.report(step)}
    return found


def table_of_layouts(found: dict[str, Any]) -> str:
    kinds = ("arguments", "donated", "temporaries")
    rows = [["layout", "arguments", "donated of them", "temporaries", "collectives"]]
    for layout, report in found.items():
        names = [f"{n} {name}" for name, n in report["collectives"].items()]
        sizes = [f"{report[kind]:,}" for kind in kinds]
        rows.append([layout, *sizes, ", ".join(names) or "none"])
    return text_of(rows)


def metrics(run: str | Path) -> list[dict[str, Any]]:
    lines = Path(run, "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def losses(run: str | Path) -> list[float]:
    return [event["loss"] for event in metrics(run) if "loss" in event]


def processes() -> dict[str, Any]:
    """The losses of one small run: on one device, on two processes, and interrupted."""
    sys.path.insert(0, str(EXAMPLES))
    os.chdir(EXAMPLES)
    from lm import launch

    with tempfile.TemporaryDirectory() as place:
        folder, found = Path(place), {}
        data = folder / "text"
        copy_small_modules(data)

        def start(run: str, count: int, devices: int) -> list[subprocess.Popen]:
            places = {"data": data, "corpus": folder / "corpus", "output": folder / run}
            arguments = options_of({**TINY, **places, "parallel": "fsdp"})
            return launch.start(count, devices, "lm.train", arguments)

        for name, count, devices in (
            ("one process of one device", 1, 1),
            ("two processes of four devices", 2, 4),
        ):
            assert launch.wait(start(name, count, devices)) == 0
            found[name] = losses(folder / name)
        name = "the same, one killed; then one process of eight devices"
        running = start(name, 2, 4)
        while not list((folder / name).glob("checkpoints/[0-9]*")):
            time.sleep(0.01)
        running[1].kill()
        assert launch.wait(running) != 0
        assert launch.wait(start(name, 1, 8)) == 0
        found[name] = losses(folder / name)
    return found


def seconds_a_batch(folder: Path, batches: int = 100) -> dict[int, float]:
    """CPU seconds of a batch by tokens a shard: some, and a thousand times as many."""
    sys.path.insert(0, str(EXAMPLES))
    from lm import loader
    from lm.config import Config

    found = {}
    for tokens in (200_000, 200_000_000):
        config = Config(**TINY, corpus=str(folder / str(tokens)), threads=1)
        Path(config.corpus).mkdir()
        for i in range(config.shards):
            with Path(config.corpus, f"train-{i}.bin").open("wb") as file:
                file.truncate(2 * tokens)  # sparse: zeros, and not on the disk
        rows = loader.batches(config)
        next(rows)
        began = time.process_time()
        for _ in range(batches):
            next(rows)
        found[tokens] = (time.process_time() - began) / batches
    return found


def copy_small_modules(place: Path) -> None:
    place.mkdir(exist_ok=True)
    library = Path(sysconfig.get_paths()["stdlib"])
    modules = sorted(library.glob("*.py"), key=lambda path: path.name)
    for path in [p for p in modules if 3_000 < p.stat().st_size < 12_000][:50]:
        shutil.copy(path, place)


def table_of_processes(found: dict[str, list[float]]) -> str:
    first, *_ = found.values()
    rows = [["run", "steps", "first loss", "last loss", "largest difference"]]
    for name, losses in found.items():
        apart = max(abs(a - b) for a, b in zip(first, losses, strict=True))
        ends = [f"{losses[i]:.4f}" for i in (0, -1)]
        rows.append([name, str(len(losses)), *ends, f"{apart:.0e}"])
    return text_of(rows)


def tokens(run: dict[str, Any]) -> int:
    c = run["config"]
    return c["steps"] * c["batch"] * c["context"]


def operations(run: dict[str, Any]) -> float:
    """About how many a training takes: six a weight and token."""
    return 6.0 * run["results"]["weights"] * tokens(run)


def named(kept: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The runs of one kind, by their seeds: their names are the kind and a seed."""
    return [run for name, run in sorted(kept["runs"].items()) if name[:-1] == kind]


def table_of_runs(kept: dict[str, Any], gpu: dict[str, Any]) -> str:
    """The largest run, and the one on a GPU, beside the models that count."""
    rows = [[name, bits] for name, bits in kept["baselines"].items()]
    runs = [("two CPU cores", run) for run in named(kept, SIZES[-1])]
    for where, run in [*runs, (gpu["device"], gpu)]:
        weights = run["results"]["weights"]
        name = f"this model, {weights:,} weights, {tokens(run):,} tokens, {where}"
        rows.append([name, run["results"]["test"]])
    rows.sort(key=lambda row: row[1])
    return text_of([["model", "bits a byte"], *([n, f"{x:.3f}"] for n, x in rows)])


def table_of_text(kept: dict[str, Any]) -> str:
    text = kept["text"]
    rows = [["part", "files", "bytes", "share in passages of the training text"]]
    for part, size in text["bytes"].items():
        share = text["shares in passages of the training text"].get(part)
        said = "" if share is None else f"{share:.2%}"
        rows.append([part, str(text["files"][part]), f"{size:,}", said])
    return text_of(rows)


def table_of_ablations(kept: dict[str, Any]) -> str:
    """What a change adds to bits a byte of test text: for each seed, and the mean."""
    rows = [["change", *(f"seed {seed}" for seed in range(3)), "mean"]]
    plain = [run["results"]["test"] for run in named(kept, "B")]
    for kind, change in CHANGES.items():
        other = [run["results"]["test"] for run in named(kept, kind)]
        apart = [b - a for a, b in zip(plain, other, strict=True)]
        apart.append(sum(apart) / len(apart))
        rows.append([change, *(f"{x:+.3f}" for x in apart)])
    apart = [b - a for a, b in zip(plain, [*plain[1:], plain[0]], strict=True)]
    rows.append(
        ["the next seed (after the last, the first)", *(f"{x:+.3f}" for x in apart), ""]
    )
    return text_of(rows)


def predict(smaller: list[dict[str, Any]], operations_of_next: float) -> float:
    """Bits a byte at a number of operations, by a power law through smaller runs."""
    x = [math.log(operations(run)) for run in smaller]
    y = [math.log(run["results"]["test"]) for run in smaller]
    slope, start = np.polyfit(x, y, 1)
    return math.exp(start + slope * math.log(operations_of_next))


def picture_of_curves(kept: dict[str, Any]) -> str:
    """A cell that draws the learning curve of the largest run beside the baselines."""
    [run] = named(kept, SIZES[-1])
    a_step = run["config"]["batch"] * run["config"]["context"]
    curve = [(step * a_step, round(bits, 4)) for step, bits in run["curve"]]
    beside = {
        name: round(bits, 4)
        for name, bits in kept["baselines"].items()
        if name.startswith(("xz", "Kneser-Ney"))
    }
    return f"""{MADE_BY}
import matplotlib.pyplot as plt
import numpy as np

curve = {listed(curve)}
test = {run["results"]["test"]:.4f}
baselines = {{
{lines(f"{name!r}: {value}," for name, value in beside.items())}}}

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(*np.array(curve).T, label="this model, validation text")
axes.plot(curve[-1][0], test, "o", color="C0", label="and test text")
for i, (name, value) in enumerate(baselines.items()):
    axes.axhline(value, color=f"C{{i + 1}}", linestyle="--", label=name)
axes.set(xlabel="tokens seen", ylabel="bits a byte")
axes.legend()
plt.show()
"""


def picture_of_scaling(kept: dict[str, Any], predicted: dict[str, Any]) -> str:
    """A cell that draws what was predicted beside what came."""
    *smaller, largest = (
        [(operations(run), round(run["results"]["test"], 4)) for run in named(kept, n)]
        for n in SIZES
    )
    return f"""{MADE_BY}
import matplotlib.pyplot as plt
import numpy as np

smaller = {listed([pair for size in smaller for pair in size])}
operations, predicted = {predicted["operations"]}, {predicted["bits a byte"]:.4f}
measured = {largest[0][1]}

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(*np.array(smaller).T, "o", label="three smaller sizes")
slope, start = np.polyfit(*np.log(smaller).T, 1)
x = np.geomspace(smaller[0][0], operations, 50)
axes.plot(x, np.exp(start) * x**slope, "--", color="C0")
axes.plot(operations, predicted, "x", label=f"predicted: {{predicted:.3f}}")
axes.plot(operations, measured, "s", label=f"measured: {{measured:.3f}}")
axes.set(xscale="log", xlabel="operations", ylabel="bits a byte of test text")
axes.legend()
plt.show()
"""


def listed(pairs: list[tuple[Any, ...]]) -> str:
    return f"[\n{lines(f'{pair},' for pair in pairs)}]"


def lines(each: Iterable[str]) -> str:
    return "".join(f"    {line}\n" for line in each).replace("'", '"')


def keep(runs: list[Path]) -> None:
    """Store what finished runs measured; the baselines lie in the first one."""
    found = {run.name: without_places(measured(run)) for run in runs}
    baselines = json.loads((runs[0] / "baselines.json").read_text())
    text = text_read_by(runs[0])
    store("runs", {"baselines": baselines, "text": text, "runs": found})


def text_read_by(run: Path) -> dict[str, Any]:
    text = json.loads(
        Path(measured(run)["config"]["corpus"], "corpus.json").read_text()
    )
    text["files"] = {part: len(names) for part, names in text["files"].items()}
    names = ("files", "bytes", "tokens", "shares in passages of the training text")
    return {name: text[name] for name in names}


def without_places(run: dict[str, Any]) -> dict[str, Any]:
    """A run without the folders where it lay, which say nothing to a reader."""
    config = run["config"].items()
    places = ("output", "corpus", "data")
    return run | {"config": {k: v for k, v in config if k not in places}}


def measured(run: Path) -> dict[str, Any]:
    config, results = (
        json.loads((run / f"{name}.json").read_text()) for name in ("config", "results")
    )
    name = "validation_bits_a_byte"
    curve = [(event["step"], event[name]) for event in metrics(run) if name in event]
    return {"config": config, "results": results, "curve": curve}


def foretell(runs: list[Path], weights: int, tokens_of_next: int) -> None:
    """Store the prediction for a run that is still to come."""
    count = 6.0 * weights * tokens_of_next
    bits = predict([measured(run) for run in runs], count)
    store("prediction", {"operations": count, "bits a byte": bits})


def kept(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


def store(name: str, value: Any) -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


def main() -> None:
    from tests.bench import bench_lm

    match sys.argv[1:]:
        case ["layouts"]:
            store("layouts", layouts())
        case ["processes"]:
            store("processes", processes())
        case ["loader"]:
            with tempfile.TemporaryDirectory() as place:
                for tokens, seconds in seconds_a_batch(Path(place)).items():
                    print(f"{tokens:,} tokens a shard: {1e3 * seconds:.2f} ms a batch")
            return
        case ["speed"]:
            store("speed", bench_lm.measure(9))
        case ["gpu", device, run]:
            store("gpu", {"device": device, **without_places(measured(Path(run)))})
        case ["predict", weights, count, *names]:
            return foretell([Path(name) for name in names], int(weights), int(count))
        case [_, *_] as names:
            keep([Path(name) for name in names])
    for name, table in tables().items():
        (FOLDER / name).write_text(table)


def tables() -> dict[str, str]:
    from tests.bench import bench_lm

    runs = kept("runs")
    return {
        "results.csv": table_of_runs(runs, kept("gpu")),
        "text.csv": table_of_text(runs),
        "ablations.csv": table_of_ablations(runs),
        "layouts.csv": table_of_layouts(kept("layouts")),
        "processes.csv": table_of_processes(kept("processes")),
        "speed.csv": bench_lm.table(kept("speed")),
        "curves.py": picture_of_curves(runs),
        "scaling.py": picture_of_scaling(runs, kept("prediction")),
    }


if __name__ == "__main__":
    main()
