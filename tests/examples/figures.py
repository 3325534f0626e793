"""What three runs of each whole program gave: kept as measured, shown as a table.

The session `weekly` of nox runs the programs at their real size and keeps what they
found below `outputs/systems`. From there the chapters take their tables.
"""

import ast
import csv
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
EXAMPLES, KEPT = ROOT / "examples", ROOT / "outputs" / "systems"


class Run(NamedTuple):
    results: dict[str, Any]
    seconds: float  # of all cores together
    megabytes: float  # of main memory, at most


def at(*keys: str) -> Callable[[dict], float]:
    def find(results: dict) -> float:
        for key in keys:
            results = results[key]
        return results

    return find


def largest_apart(results: dict) -> float:
    return max(row["losses apart"] for row in results.values())


def fewest_effective(results: dict) -> int:
    return round(min(row["ess"] for row in results["posterior"].values()))


def largest(key: str) -> Callable[[dict], float]:
    return lambda results: max(abs(row[key]) for row in results["reference"].values())


# Of each program what its chapter shows: first what it is for, then what is beside it.
SHOWN: dict[str, dict[str, Callable[[dict], float]]] = {
    "train_convnet": {
        "test accuracy, convolutional": at("convnet", "test"),
        "plain network": at("plain", "test"),
        "linear model": at("linear", "test"),
        "three nearest neighbors": at("neighbors", "test"),
        "convolutional ahead of them": at("neighbors", "convnet ahead"),
        "standard error of that": at("neighbors", "its error"),
    },
    "three_libraries": {
        "test accuracy, plain JAX": at("plain", "test accuracy"),
        "Flax NNX": at("flax", "test accuracy"),
        "Equinox": at("equinox", "test accuracy"),
        "largest difference of losses": largest_apart,
    },
    "frozen_encoder": {
        f"{count} labels a class, {said}": at("written", count, *keys)
        for count in ("2", "5", "20")
        for said, keys in {
            "frozen encoder": ("frozen encoder", "accuracy"),
            "nearest image": ("nearest image", "accuracy"),
            "frozen ahead of it": ("nearest image", "frozen ahead"),
            "standard error of that": ("nearest image", "its error"),
            "pixels": ("pixels", "accuracy"),
            "from nothing": ("from nothing", "accuracy"),
            "fine-tuned": ("fine-tuned", "accuracy"),
        }.items()
    },
    "lora": {
        f"{task}, {way}": at("accuracy", task, way)
        for task in ("mirrored", "turned", "glare", "inverted")
        for way in ("LoRA", "last layer", "everything", "neighbors")
    },
    "diffusion": {
        f"{what}, {made}": at(key, what)
        for what in ("told apart", "fidelity", "variety", "copied")
        for made, key in {
            "diffusion": "diffusion, guided",
            "flow matching": "flow matching, guided",
            "blends of two digits": "blends",
            "a Gaussian a class": "gaussians",
            "a narrower Gaussian": "gaussians, narrowed",
            "real digits": "real",
        }.items()
    },
    "text_to_image": {
        "all three right, two steps": at("two steps", "unseen", "all"),
        "one step": at("one step", "unseen", "all"),
        "in order": at("in order", "unseen", "all"),
        "two steps, one round": at("two steps", "by rounds", "1"),
        "two steps, two rounds": at("two steps", "by rounds", "2"),
        "two steps, another's prompt": at("two steps", "another's prompt", "all"),
    },
    "faults": {
        f"noise removed, {setup}": at(setup, "noise removed")
        for setup in (
            *("working", "linear map"),
            *("bfloat16 weights", "order of pixels", "scale of inputs"),
        )
    },
    "hares_and_lynxes": {
        "starts that reach the best fit, of 64": at("fit", "reached the best"),
        "divergences": at("divergences"),
        "fewest effective draws": fewest_effective,
        **{
            f"{name}, {said}": at("reference", name, key)
            for name in ("alpha", "gamma")
            for said, key in {"mean": "mean", "published": "published"}.items()
        },
        "largest difference of a mean, in errors": largest("apart"),
        "of a standard deviation, in errors": largest("sd apart"),
        "variance left by the best next count": at("next", "best", "left"),
        "by the hares of 1930": at("next", "left", "hare", "1930"),
        "by simulated best counts, sampled again": at("next", "best", "left by refits"),
        "the same counts by weights": at("next", "best", "left by weights"),
        "by simulated worst counts, sampled again": at(
            "next", "worst", "left by refits"
        ),
    },
}


#: Runs a command and writes what it used. A program counts as at least as large as the
#: process that started it, so this small one starts it.
_USED = """
import json, resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss], file)
sys.exit(status)
"""


def measured(name: str, folder: Path, *options: str) -> Run:
    """Run a program of `examples/` in a folder as a reader would, nothing compiled yet.

    Raises RuntimeError with what it said if it does not end well.
    """
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *options]
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "MPLBACKEND": "agg"}
    said, wrong, used = (folder / f"{what}.txt" for what in ("said", "wrong", "used"))
    between = [sys.executable, "-c", _USED, str(used)]
    with said.open("w") as out, wrong.open("w") as err:
        where = {"cwd": folder, "env": env, "stdout": out, "stderr": err}
        running = subprocess.Popen(between + command, **where, process_group=0)
        try:
            running.wait()
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    if running.returncode or wrong.read_text():
        raise RuntimeError(f"{name}: {said.read_text()}\n{wrong.read_text()}")
    text = (folder / name / "results.json").read_text()
    # Messages of errors name the file of the program, which lies elsewhere for others.
    results = json.loads(text.replace(f"{EXAMPLES}{os.sep}", ""))
    seconds, most = json.loads(used.read_text())
    return Run(results, seconds, most * (1 if sys.platform == "darwin" else 1024) / 1e6)


def keep(name: str, seed: int, run: Run, kept: Path = KEPT) -> None:
    """Add a run to those of the program that are kept, and write the table anew.

    Runs of the program as it was before are dropped.
    """
    kept.mkdir(parents=True, exist_ok=True)
    path = kept / f"{name}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    when = {"date": time.strftime("%Y-%m-%d"), "jax": version("jax")}
    code = digest(EXAMPLES / f"{name}.py")
    found = {seed: other for seed, other in found.items() if other["program"] == code}
    found[str(seed)] = {**run._asdict(), **when, "program": code}
    found = dict(sorted(found.items()))
    path.write_text(json.dumps(found, indent=1) + "\n")
    path.with_suffix(".csv").write_text(table(name, found))


def digest(program: Path) -> str:
    """What a program does, as a digest of its code, comments and docstrings left out.

    The code of programs beside it that it imports counts as its own. What a size says
    of the time that it takes is only printed, so it is left out as well.
    """
    return hashlib.sha256("\n".join(_code(program)).encode()).hexdigest()


def _code(program: Path) -> Iterator[str]:
    tree = ast.parse(program.read_text("utf-8"))
    imported: list[str | None] = []
    for node in ast.walk(tree):
        told = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if told and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Size":
            node.args = [arg for arg in node.args if not _is_text(arg)]
        elif isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported.append(node.module)
    yield ast.unparse(tree)
    for name in imported:
        beside = program.with_name(f"{name}.py")
        if beside.exists():
            yield from _code(beside)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def table(name: str, found: dict[str, dict]) -> str:
    """The runs of a program as comma-separated values, one column for each seed."""
    rows = [["figure", *(f"seed {seed}" for seed in found)]]
    for said, figure in SHOWN[name].items():
        rows.append(
            [said, *(rounded(figure(run["results"])) for run in found.values())]
        )
    for said, form in {
        "CPU seconds": "{seconds:.0f}",
        "peak memory in MB": "{megabytes:.0f}",
        "run on": "{date}",
        "with JAX": "{jax}",
    }.items():
        rows.append([said, *(form.format(**run) for run in found.values())])
    return text_of(rows)


def text_of(rows: list[list[Any]]) -> str:
    """Comma-separated values."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def rounded(number: float) -> str:
    if isinstance(number, int):
        return str(number)
    return f"{number:.0e}" if 0 < abs(number) < 1e-3 else f"{number:.3f}"
