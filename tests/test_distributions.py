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
def wheel(request, tmp_path_factory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=SOURCES[request.param], check=True, capture_output=True)
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


def installed(folder: Path, *packages: str) -> tuple[set[str], float]:
    """What a new environment holds after `pip install`, and its weight in megabytes."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--no-compile"]
    subprocess.run([*pip, *packages], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    names = {path.name.split("-")[0].lower() for path in site.glob("*.dist-info")}
    sizes = [
        path.stat().st_size
        for path in site.rglob("*")
        if path.is_file() and path.relative_to(site).parts[0][:3] != "pip"
    ]
    return names - {"pip"}, sum(sizes) / 1e6


BOOK = {
    "docs/index.md": "---\nfile_format: mystnb\n---\n# NumPy\n\n"
    "```{code-cell}\nimport numpy as np\nnp.arange(4) * 14\n```\n",
    "conf/conf.py": 'extensions = ["myst_nb", "executed_book"]\n',
}


@pytest.mark.weekly
def test_a_wheel_in_a_clean_environment_builds_a_book_of_numpy(wheel, tmp_path: Path):
    """As the page says it is installed: a few small packages more than MyST-NB."""
    name, made = wheel
    if name != "executed_book":
        pytest.skip("readers install this one, into what they have")
    plain, plain_mb = installed(tmp_path / "plain", "myst-nb")
    ours, mb = installed(tmp_path / "ours", str(made))
    print(f"{len(ours)} packages, {mb:.0f} MB; MyST-NB {len(plain)}, {plain_mb:.0f} MB")
    new = {"executed_book", "beautifulsoup4", "markdownify", "six", "soupsieve"}
    assert ours - plain <= new | {"sphinx_design"}
    assert mb < 1.1 * plain_mb
    python = tmp_path / "ours" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "numpy"], check=True)
    for place, text in BOOK.items():
        path = tmp_path / "book" / place
        path.parent.mkdir(parents=True)
        path.write_text(text)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for command in ("build", "verify", "build"):
        tool = [python, "-m", "executed_book", command]
        ended = subprocess.run(
            tool, cwd=tmp_path / "book", env=env, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr
    assert "1 program: 1 held" in ended.stdout
    page = (tmp_path / "book" / "_build" / "html" / "index.html").read_text()
    assert "42]" in page
    assert "JAX" not in page


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
