"""What training in earnest needs, each shown by a command of `examples/lm`.

`python -m tests.examples.lm_rows` runs all commands, one after another in a new folder,
and keeps what they printed for the chapter.
"""

import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from .figures import EXAMPLES, KEPT, ROOT
from .lm_figures import TINY, copy_small_modules

SESSION = KEPT / "lm" / "session.txt"

TRAIN = "python -m lm.train --config tiny.toml"
LAST = """grep -h '"step": 12, "loss"'"""
FIRST = "head -qn 1"
WAIT = """until grep -qs '"step": 20,' long/metrics.jsonl; do sleep 0.1; done"""


class Row(NamedTuple):
    """A command, and what it has to print."""

    command: str
    prints: str


ROWS = {
    "data of one's own": Row(
        f"{TRAIN} --data text --output run",
        r"step 6: .*\nstep 12: .*\ntest: \d\.\d+ bits a byte\n.* tokens a second",
    ),
    "a pipeline that scales": Row(
        "python -m tests.examples.lm_figures loader",
        r"tokens a shard: .* ms a batch\n.*,000,000 tokens a shard: .* ms a batch",
    ),
    "a split that does not leak": Row(
        "grep -A 2 'in passages of the training text' corpus/corpus.json",
        r'"validation": 0\.0\d*,\n *"test": 0\.0\d*',
    ),
    "tokens": Row(
        'python -c "from tokenizers import Tokenizer as T; print('
        "T.from_file('corpus/tokenizer.json').encode('def read(self):').tokens)\"",
        r"\['(de|def|d)', .*\]",
    ),
    "a model as its field writes it": Row(
        'python -c "from flax import nnx; from lm import evaluate; params ='
        " evaluate.load('run')[2]; [print(*path, leaf.shape) for path, leaf in"
        ' nnx.to_flat_state(params)]"',
        r"(?s)query.*gate",
    ),
    "mixed precision": Row(
        f"{TRAIN} --compute bfloat16 --output half > log; {LAST} run/metrics.jsonl"
        " half/metrics.jsonl",
        r"(?s)^\{[^}]*\}\n\{[^}]*\}$",
    ),
    "accumulation": Row(
        f"{TRAIN} --accumulate 2 --output parts > log; {LAST} run/metrics.jsonl"
        " parts/metrics.jsonl",
        r"(?s)\"loss\": (\d\.\d{4}).*\"loss\": \1",
    ),
    "rematerialization": Row(
        f"{TRAIN} --remat none --output kept > log; {FIRST} run/metrics.jsonl"
        " kept/metrics.jsonl",
        r"(?s)\"temporaries\": \d+.*\"temporaries\": \d+",
    ),
    "donation": Row(
        "python -c \"import json; m = json.loads(open('run/metrics.jsonl').readline());"
        " print(m['donated'], 'of', m['results'], 'bytes')\"",
        r"^\d+ of \d+ bytes$",
    ),
    "devices": Row(
        f"JAX_NUM_CPU_DEVICES=8 {TRAIN} --parallel fsdp --output eight > log; {FIRST}"
        f" eight/metrics.jsonl; {LAST} run/metrics.jsonl eight/metrics.jsonl",
        r"(?s)\"devices\": 8, .*all-gather.*\"loss\": (\d\.\d{4}).*\"loss\": \1",
    ),
    "processes": Row(
        "python -m lm.launch --processes 2 --devices 4 lm.train --config tiny.toml"
        f" --parallel fsdp --output two > log; {LAST} run/metrics.jsonl"
        " two/metrics.jsonl",
        r"(?s)\"loss\": (\d\.\d{4}).*\"loss\": \1",
    ),
    "checkpoints": Row(
        f"rm -r eight/checkpoints/12; JAX_NUM_CPU_DEVICES=4 {TRAIN} --parallel fsdp"
        f" --output eight > log; head -1 log; {LAST} run/metrics.jsonl"
        " eight/metrics.jsonl",
        r"(?s)^Going on after step 8\.\n.*\"loss\": (\d\.\d{4}).*\"loss\": \1",
    ),
    "preemption": Row(
        f"{TRAIN} --steps 100000 --output long & {WAIT}; kill -TERM $!; wait $!;"
        " echo it left with $?",
        r"SIGTERM: saved step \d+\. The same command .*\nit left with 0$",
    ),
    "metrics": Row(
        "ls run; tail -1 run/metrics.jsonl",
        r"(?s)events\.out\.tfevents.*\"validation_bits_a_byte\": \d",
    ),
    "evaluation": Row(
        "python -m lm.baselines run",
        r"(?s)Kneser-Ney, \d bytes +\d.*uniform +8\.000",
    ),
    "configuration": Row(
        f"{TRAIN} --rate 0.1 --output run 2>&1",
        r"^The run in run was made with --rate 0\.004: give these, or another --output",
    ),
    "profiling": Row(
        f"{TRAIN} --steps 17 --profile --output profiled | grep Recorded",
        r"^Recorded steps 10 to 15 in profiled/profile\.$",
    ),
    "generation": Row(
        "python -m lm.generate run --prompt 'def read' --tokens 8 --temperature 0",
        r"^def read",
    ),
    "serving": Row(
        "python -m lm.export run exported > log; python -I exported/serve.py --port 0"
        " > log & until grep -qs http log; do sleep 0.1; done; curl -s --noproxy '*'"
        " $(grep -o 'http.*' log) -d '"
        '{"prompts": ["def read"], "tokens": 8, "temperature": 0}'
        "'; kill $!",
        r"^\{\"texts\": \[\"def read",
    ),
    "adapting": Row(
        "python -m lm.adapt run --output adapted",
        r"(?s)^prose: \d\.\d+ bits a byte before, \d\.\d+ after\n.*numbers trained",
    ),
}


def run_all() -> str:
    """All commands with what they printed, and how long that took."""
    places = os.pathsep.join(
        [str(EXAMPLES), str(ROOT), os.environ.get("PYTHONPATH", "")]
    )
    python = Path(sys.executable).parent
    env = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": places,
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
    }
    began, said = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as place:
        copy_small_modules(Path(place) / "text")
        options = {**TINY, "data": "text"}
        lines = [f"{name} = {value!r}\n" for name, value in options.items()]
        (Path(place) / "tiny.toml").write_text("".join(lines).replace("'", '"'))
        for command in ("cat tiny.toml", *(row.command for row in ROWS.values())):
            more = {"cwd": place, "env": env, "capture_output": True, "text": True}
            ran = subprocess.run(["bash", "-c", command], check=False, **more)
            said.append(f"$ {command}\n{ran.stdout.strip()}\n{ran.stderr.strip()}")
    seconds = time.perf_counter() - began
    names = ["the options of all", *ROWS]
    head = f"{len(ROWS)} rows in {seconds:.0f} seconds on {os.cpu_count()} cores"
    when = f"{time.strftime('%Y-%m-%d')}, with JAX {version('jax')}"
    rows = [f"# {name}\n{one.strip()}\n" for name, one in zip(names, said, strict=True)]
    return "\n".join([f"# {head}, {when}\n", *rows])


def printed(session: str) -> dict[str, tuple[str, str]]:
    """For each row of a session its command and what was printed."""
    found = {}
    for part in f"\n{session}".split("\n# ")[2:]:
        name, command, *lines = part.strip().split("\n")
        found[name] = command.removeprefix("$ "), "\n".join(lines)
    return found


if __name__ == "__main__":
    SESSION.write_text(run_all())
