"""Runs of whole programs: measured, kept, and made into a table."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from . import figures

RUNS = sorted(figures.KEPT.glob("*.json"))


def test_runs_of_the_program_as_it_is_are_kept_by_their_seeds(tmp_path, monkeypatch):
    rows = [name.split(", ")[1] for name in figures.SHOWN["faults"]]
    run = figures.Run({name: {"noise removed": 0.5} for name in rows}, 12.6, 345.4)
    for seed, code in ((0, "old"), (2, "new"), (1, "new")):
        monkeypatch.setattr(figures, "digest", lambda path, code=code: code)
        figures.keep("faults", seed, run, tmp_path)
    kept = json.loads((tmp_path / "faults.json").read_text())
    assert [*kept] == ["1", "2"]
    assert kept["1"].items() >= run._asdict().items()
    assert (tmp_path / "faults.csv").read_text() == figures.table("faults", kept)


def test_a_program_that_fails_is_not_kept(tmp_path: Path):
    with pytest.raises(RuntimeError, match="invalid choice: 'huge'"):
        figures.measured("faults", tmp_path, "--size", "huge")


def test_what_a_program_uses_is_its_own_and_not_its_tests(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "EXAMPLES", tmp_path)
    (tmp_path / "small").mkdir()
    results = "open('small/results.json', 'w').write('{}')\n"
    (tmp_path / "small.py").write_text(results + "sum(range(10**7))\nb'x' * 10**8\n")
    large = np.ones(10**8)  # 800 MB
    run = figures.measured("small", tmp_path)
    assert 100 < run.megabytes < 300
    assert 0.05 < run.seconds < 30
    del large


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_runs_that_are_kept_hold_what_a_new_one_has_to(path, monkeypatch):
    module = import_module(f"{__package__}.test_{path.stem}")
    [judge] = [f for name, f in vars(module).items() if "at_its_real_size" in name]
    for seed, run in json.loads(path.read_text()).items():
        monkeypatch.setattr(module, "run", lambda *_, run=run: run["results"])
        judge(int(seed), path.parent)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_runs_that_are_kept_are_of_the_program_as_it_is(path: Path):
    """A failure says that the session `weekly` has to run the program again."""
    made_by = {run["program"] for run in json.loads(path.read_text()).values()}
    assert made_by == {figures.digest(figures.EXAMPLES / path.with_suffix(".py").name)}


def test_a_program_is_another_when_its_code_is(tmp_path: Path):
    def digest(text: str) -> str:
        path = tmp_path / "one.py"
        path.write_text(text)
        return figures.digest(path)

    program = '"""This."""\n\n\ndef f(x):\n    """Doubled."""\n    return 2 * x\n'
    reworded = '"""That."""\ndef f(x):\n    """Twice."""\n    return 2 * x  # new\n'
    assert digest(program) == digest(reworded)
    assert digest(program) != digest(program.replace("2", "3"))
    sized = 'SIZES = {"tiny": Size(10, "a minute")}\n'
    assert digest(sized) == digest(sized.replace("a minute", "an hour"))
    assert digest(sized) != digest(sized.replace("10", "11"))


@pytest.mark.parametrize("line", ["import other as o", "from other import g"])
def test_a_program_is_another_when_one_that_it_imports_is(tmp_path: Path, line: str):
    path, other = tmp_path / "one.py", tmp_path / "other.py"
    path.write_text(f"import json\n\ndef f():\n    {line}\n")
    other.write_text("g = 1\n")
    before = figures.digest(path)
    other.write_text("g = 1  # the same\n")
    assert figures.digest(path) == before
    other.write_text("g = 2\n")
    assert figures.digest(path) != before


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_tables_are_those_of_the_runs_that_are_kept(path: Path):
    found = json.loads(path.read_text())
    assert path.with_suffix(".csv").read_text() == figures.table(path.stem, found)
