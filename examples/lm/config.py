"""All options of a run: a dataclass, a TOML file, and the command line.

Every field of `Config` is an option, so `--steps 100` overrides `steps = 50` of the
file that `--config` names. A run stores its configuration beside its checkpoints.
"""

import argparse
import dataclasses
import json
import sys
import tomllib
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import NoReturn


def option(default, help, **more):
    return field(default=default, metadata={"help": help, **more})


def place(default, help, **more):
    """An option that may change when a run goes on: it does not change the result."""
    return option(default, help, place=True, **more)


@dataclass(frozen=True)
class Config:
    data: str = option("", "folder of text files; Python's own library if empty")
    vocab: int = option(2048, "tokens of the byte-pair encoding")
    shards: int = option(8, "files of training tokens, divided among processes")

    width: int = option(128, "width of the model")
    layers: int = option(4, "layers")
    heads: int = option(4, "heads of the queries")
    kv_heads: int = option(2, "heads of the keys and values")
    context: int = option(128, "tokens that the model sees")
    compute: str = option(
        "bfloat16", "dtype of activations", choices=("bfloat16", "float32")
    )
    remat: str = option(
        "dots", "what the backward pass recomputes", choices=("none", "dots", "all")
    )

    steps: int = option(1500, "optimizer steps")
    batch: int = option(16, "sequences a step")
    accumulate: int = option(1, "parts of a batch whose gradients are added up")
    rate: float = option(4e-3, "largest learning rate")
    seed: int = option(0, "seed of the weights and of the order of the text")

    output: str = place("run", "folder of the run")
    corpus: str = place("corpus", "folder of the tokens, made if missing")
    parallel: str = place(
        "data", "layout", choices=("data", "fsdp", "tensor", "fsdp+tensor")
    )
    tensor: int = place(2, "devices along the model axis, where tensors are split")
    save_every: int = place(100, "steps between checkpoints")
    eval_every: int = place(250, "steps between evaluations on validation text")
    log_every: int = place(10, "steps between lines of metrics")
    threads: int = place(2, "threads that read ahead")
    profile: bool = place(False, "record steps 10 to 15 for the profiler")

    def __post_init__(self):
        for name in ("shards", "width", "layers", "heads", "kv_heads"):
            require(getattr(self, name) >= 1, f"--{name} has to be at least 1")
        for name in ("context", "steps", "batch", "accumulate", "save_every"):
            require(getattr(self, name) >= 1, f"--{name} has to be at least 1")
        for name in ("eval_every", "log_every", "tensor"):
            require(getattr(self, name) >= 1, f"--{name} has to be at least 1")
        require(0 <= self.seed < 2**31, "--seed has to be from 0 to 2**31 - 1")
        require(
            257 <= self.vocab <= 2**16,
            f"--vocab {self.vocab} has to be from 257, for each byte and the end of a "
            "document, to 65536",
        )
        require(self.threads >= 0, "--threads has to be at least 0")
        require(0 < self.rate < inf, "--rate has to be above 0, and finite")
        require(
            self.width % (2 * self.heads) == 0,
            f"--width {self.width} is not divisible by twice --heads {self.heads}",
        )
        require(
            self.heads % self.kv_heads == 0,
            f"--heads {self.heads} is not divisible by --kv_heads {self.kv_heads}",
        )
        parts = self.shards * self.accumulate
        require(
            self.batch % parts == 0,
            f"--batch {self.batch} is not divisible by {parts}, shards by accumulate",
        )


def require(true, otherwise):
    if not true:
        stop(otherwise)


def stop(message) -> NoReturn:
    """End the program with one line that says what is wrong and what to do."""
    sys.exit(" ".join(str(message).split()))


def parser(description):
    """A parser with one option for each field."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--config", type=Path, help="TOML file with these options")
    for f in dataclasses.fields(Config):
        extra = {"choices": f.metadata.get("choices"), "type": type(f.default)}
        if f.type is bool:
            extra = {"action": argparse.BooleanOptionalAction}
        parser.add_argument(
            f"--{f.name}",
            default=argparse.SUPPRESS,
            help=f"{f.metadata['help']} (default: {f.default or 'none'})",
            **extra,
        )
    return parser


def from_options(options):
    """The configuration of a file, overridden by the command line."""
    chosen = vars(options).copy()
    path, known = chosen.pop("config"), {f.name: f for f in dataclasses.fields(Config)}
    try:
        stored = tomllib.loads(path.read_text()) if path else {}
    except (OSError, ValueError) as error:
        stop(f"Cannot read {path}: {error}. Give --config a TOML file.")
    for name, value in stored.items():
        require(name in known, f"{path}: no option is called {name}: see --help")
        kind = type(known[name].default)
        fits = type(value) is kind or (kind is float and type(value) is int)
        require(fits, f"{path}: {name} = {value!r} has to be of type {kind.__name__}")
        choices = known[name].metadata.get("choices") or (value,)
        require(value in choices, f"{path}: {name} has to be one of {choices}")
    return Config(**{**stored, **chosen})


def differences(old, new):
    """The options that change a run's result and differ, as text."""
    changed = [
        f"--{f.name} {getattr(old, f.name)}"
        for f in dataclasses.fields(Config)
        if not f.metadata.get("place") and getattr(old, f.name) != getattr(new, f.name)
    ]
    return " ".join(changed)


def write(config, path):
    path.write_text(json.dumps(dataclasses.asdict(config), indent=1) + "\n")


def read(run):
    """The configuration that a run was made with."""
    path = Path(run) / "config.json"
    if not path.exists():
        stop(f"{run} holds no run: train one with python -m lm.train --output {run}.")
    try:
        return Config(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        stop(f"Cannot read {path}: {error}. Restore it, or train in another --output.")
