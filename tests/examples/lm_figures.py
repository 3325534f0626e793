"""Keep what runs of `examples/lm` gave, and make the tables of its chapter.

`python -m tests.examples.lm_figures RUN ...` keeps finished runs, with the baselines
that `lm.baselines` left in the first; without a run it makes the tables again.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .figures import EXAMPLES, KEPT

FOLDER = KEPT / "lm"

#: One step of the smallest model in each layout: its losses and what it takes.
LAYOUTS = """
import json, sys
import jax, numpy as np
from dataclasses import replace
from lm import loader, parallel, train
from lm.config import Config

config, found = Config(**json.loads(sys.argv[1])), {}
rows = np.random.default_rng(1).integers(1, 300, (1, 16, 33), np.int32)
for layout in ("one device", "data", "fsdp", "tensor", "fsdp+tensor"):
    devices = 1 if layout == "one device" else 8
    config = replace(config, parallel=layout if devices > 1 else "data")
    mesh = parallel.make_mesh(config, devices)
    with jax.set_mesh(mesh):
        graph, init, abstract = train.make_state(config, mesh)
        shape = train.spec_of_rows(config, mesh)
        step = train.make_step(config, graph).lower(abstract, shape).compile()
        state, losses = init(jax.random.key(0)), []
        for _ in range(3):
            state, value = step(state, loader.to_devices(rows, mesh))
            losses.append(float(value))
        found[layout] = {"losses": losses, **parallel.report(step)}
print(json.dumps(found))
"""

TINY: dict[str, Any] = {
    "vocab": 300,
    "width": 32,
    "layers": 2,
    "heads": 4,
    "kv_heads": 2,
    "context": 32,
    "compute": "float32",
    "steps": 12,
    "save_every": 4,
    "eval_every": 6,
    "log_every": 1,
}


def layouts(**variables: str) -> dict[str, Any]:
    """For each layout the losses of three steps, bytes and collectives."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"}
    command = [sys.executable, "-c", LAYOUTS, json.dumps(TINY)]
    more = {"cwd": EXAMPLES, "env": {**env, **variables}, "check": True}
    out = subprocess.run(command, capture_output=True, text=True, **more)
    return json.loads(out.stdout)


def table_of_layouts(found: dict[str, Any]) -> str:
    rows: list[list[str]] = [
        ["layout", "arguments", "donated of them", "temporaries", "collectives"]
    ]
    for layout, report in found.items():
        names = [f"{n} {name}" for name, n in report["collectives"].items()]
        sizes = [f"{report[k]:,}" for k in ("arguments", "donated", "temporaries")]
        rows.append([layout, *sizes, ", ".join(names) or "none"])
    return text_of(rows)


def table_of_runs(kept: dict[str, Any]) -> str:
    rows = [["model", "all", "new"]]
    for name, bits in kept["baselines"].items():
        rows.append([name, *(said(bits.get(kind)) for kind in ("all", "new"))])
    for run in kept["runs"]:
        c, found = run["config"], run["results"]
        tokens = c["steps"] * c["batch"] * c["context"]
        name = f"this model, {tokens:,} tokens, seed {c['seed']}"
        rows.append([name, *(said(found["test"][kind]) for kind in ("all", "new"))])
    first, *rest = rows
    return text_of([first, *sorted(rest, key=lambda row: float(row[1]))])


def said(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def text_of(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def keep(runs: list[Path]) -> None:
    """Store what finished runs measured."""
    found = [
        {
            "config": json.loads((run / "config.json").read_text()),
            "results": json.loads((run / "results.json").read_text()),
        }
        for run in runs
    ]
    for run in found:  # where it lay says nothing to a reader
        for name in ("output", "corpus", "data"):
            run["config"].pop(name)
    baselines = json.loads((runs[0] / "baselines.json").read_text())
    store("runs", {"baselines": baselines, "runs": found})
    store("layouts", layouts())


def store(name: str, value: Any) -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


def main() -> None:
    if runs := [Path(name) for name in sys.argv[1:]]:
        keep(runs)
    for name, table in tables().items():
        (FOLDER / name).write_text(table)


def tables() -> dict[str, str]:
    """The tables that follow from what is kept."""

    def kept(name: str) -> Any:
        return json.loads((FOLDER / f"{name}.json").read_text())

    return {
        "results.csv": table_of_runs(kept("runs")),
        "layouts.csv": table_of_layouts(kept("layouts")),
    }


if __name__ == "__main__":
    main()
