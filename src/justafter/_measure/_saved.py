"""Measurements kept in a file, and a later run set beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from ._results import Change, Measurement

_FORMAT = 2


def save(path: str | Path, *measurements: Measurement) -> None:
    """Keep measurements in a file, by their names; see `measure.save`."""
    names = [one.name for one in measurements]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"two measurements are named {twice[0]!r}: give one another name, "
            "dataclasses.replace(m, name=...)"
        )
    data = {
        "kind": "Measurements",
        "format": _FORMAT,
        "measurements": [{"kind": "Measurement"} | asdict(one) for one in measurements],
    }
    Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def load(path: str | Path) -> dict[str, Measurement]:
    """The measurements in a file, by name; see `measure.load`."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: this is no file of measurements: {error}") from None
    if not isinstance(data, dict) or data.get("kind") != "Measurements":
        raise ValueError(f"{path}: this is no file of measurements: save one first")
    if data.get("format") != _FORMAT:
        raise ValueError(
            f"{path}: written in format {data.get('format')!r}, and this justafter "
            f"reads {_FORMAT}: measure anew"
        )
    try:
        found = [Measurement.from_data(one) for one in data["measurements"]]
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    return {one.name: one for one in found}


def changes(
    then: Mapping[str, Measurement],
    now: Iterable[Measurement],
    tolerance: float,
) -> list[Change]:
    """Set the measurements that are in both beside each other."""
    pairs = ((one, then[one.name]) for one in now if one.name in then)
    return [one.against(earlier, tolerance) for one, earlier in pairs]
