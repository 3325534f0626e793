"""The two wheels hold what they are for, and say what else they need."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[1]
SOURCES = {"justafter": ROOT, "executed_book": ROOT / "src" / "executed_book"}


@pytest.fixture(scope="module", params=SOURCES)
def wheel(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """The name of a package and its wheel, built from what stands here."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=SOURCES[request.param],
        check=True,
        capture_output=True,
    )
    (made,) = folder.glob("*.whl")
    return request.param, made


def test_a_wheel_holds_its_own_package_whole_and_no_other(wheel: tuple[str, Path]):
    name, path = wheel
    folder = ROOT / "src" / name
    files = {
        f"{name}/{file.relative_to(folder).as_posix()}"
        for file in folder.rglob("*")
        if file.suffix in {".py", ".css", ".js", ".typed"}
    }
    packed = {n for n in zipfile.ZipFile(path).namelist() if ".dist-info/" not in n}
    assert files <= packed
    assert {n.split("/")[0] for n in packed} == {name}
    assert f"{name}/pyproject.toml" not in packed


@pytest.mark.weekly
def test_the_oldest_sphinx_and_myst_nb_that_are_promised_build_books(tmp_path: Path):
    """In an environment of their own: the lower bounds of the engine, and tests."""
    project = tomllib.loads((SOURCES["executed_book"] / "pyproject.toml").read_text())
    needed = project["project"]["dependencies"]
    for bound in [b for b in needed if b.startswith(("sphinx>", "myst-nb>"))]:
        needed[needed.index(bound)] = bound.replace(">=", "==")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True)
    python = tmp_path / "bin" / "python"
    # The tests' own needs; the theme is as old as it has to be.
    more = ["jax", "matplotlib", "pytest", "sphinx-book-theme"]
    subprocess.run([python, "-m", "pip", "install", "-q", *needed, *more], check=True)
    code = "import sphinx, myst_nb; print(sphinx.__version__, myst_nb.__version__)"
    versions = subprocess.check_output([python, "-c", code], text=True).split()
    assert {f"sphinx=={versions[0]}", f"myst-nb=={versions[1]}"} < set(needed)
    tests = ("another_book", "book", "promises")
    files = [f"tests/book/test_{name}.py" for name in tests]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, cwd=ROOT, env=env, check=True)
