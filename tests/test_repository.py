"""The repository keeps its own promises: layout, locks, workflows, commands."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENGINE = tomllib.loads((ROOT / "src" / "executed_book" / "pyproject.toml").read_text())
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
LOCKS = sorted(ROOT.glob("requirements-*.txt"))
README = (ROOT / "README.md").read_text()

# A home folder, or where a checkout or a temporary file lies on some machine.
MACHINE_PATH = re.compile(r"/(?:home|Users)/\w+/|/root/|/tmp/\w|/var/folders/")
# The code that looks for such paths in outputs, and its tests, have to name them.
NAMES_PATHS = ("src/executed_book/", "tests/")


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so what is tracked cannot be told")
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True)
    return [name for name in listed.split("\0") if (ROOT / name).is_file()]


def locked(lock: Path) -> list[tuple[Requirement, list[str]]]:
    lines = lock.read_text().replace("\\\n", " ").splitlines()
    entries = [line.split("--hash=") for line in lines]
    return [(Requirement(entry), hashes) for entry, *hashes in entries]


def group(name: str) -> list[str]:
    entries = []
    for entry in PYPROJECT["dependency-groups"][name]:
        included = isinstance(entry, dict) and group(entry["include-group"])
        entries.extend(included or [entry])
    return entries


def wanted(lock: Path) -> list[Requirement]:
    name = lock.stem.removeprefix("requirements-")
    entries = group(name)
    if name in {"docs", "tests"}:
        entries += PYPROJECT["project"]["dependencies"]
        entries += ENGINE["project"]["dependencies"]
    return [Requirement(entry) for entry in entries]


def test_no_file_names_a_path_on_somebodys_machine() -> None:
    found = []
    for name in tracked():
        content = (ROOT / name).read_bytes()
        if b"\0" in content or name == "tests/test_repository.py":
            continue
        text = content.decode(errors="replace")
        if len(ROOT.parts) > 2 and str(ROOT) in text:  # "/src" would be anywhere
            found.append(f"{name}: {ROOT}")
        if not name.startswith(NAMES_PATHS):
            found += [f"{name}: {path}" for path in MACHINE_PATH.findall(text)]
    assert found == []


def test_python_version_lists_what_the_package_supports() -> None:
    lines = (ROOT / ".python-version").read_text().split()
    prefix = "Programming Language :: Python :: 3."
    classifiers = PYPROJECT["project"]["classifiers"]
    supported = [c.rsplit(" ", 1)[1] for c in classifiers if c.startswith(prefix)]
    assert sorted(lines) == sorted(supported)
    assert PYPROJECT["project"]["requires-python"] == f">={min(supported)}"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_lock_pins_hashes_and_holds_no_address(lock: Path) -> None:
    assert "://" not in lock.read_text()
    for requirement, hashes in locked(lock):
        assert re.fullmatch(r"==[\w.+!]+", str(requirement.specifier)), requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", h) for h in hashes)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_lock_is_in_step_with_pyproject(lock: Path) -> None:
    pins = [requirement for requirement, _ in locked(lock)]
    for want in wanted(lock):
        name = canonicalize_name(want.name)
        versions = [next(iter(p.specifier)).version for p in pins if p.name == name]
        assert versions, f"{want} is not locked: run the lock session"
        assert all(want.specifier.contains(version) for version in versions), want


@pytest.mark.parametrize("name", ["tests", "gpu", "tpu", "record", "lab"])
def test_lock_agrees_with_the_books_lock(name: str) -> None:
    def pins(name: str) -> dict[tuple[str, str], str]:
        entries = locked(ROOT / f"requirements-{name}.txt")
        return {(r.name, str(r.marker)): str(r.specifier) for r, _ in entries}

    book, other = pins("docs"), pins(name)
    shared = book.keys() & other.keys()
    has_jax = ("jax", 'python_full_version >= "3.12"') in shared
    assert has_jax or name in ("record", "lab")
    assert shared
    assert {key: other[key] for key in shared} == {key: book[key] for key in shared}


def test_oldest_python_gets_exactly_the_oldest_supported_jax() -> None:
    lock = ROOT / "requirements-tests.txt"
    floor = next(r for r in wanted(lock) if r.name == "jax").specifier
    oldest = PYPROJECT["project"]["requires-python"].removeprefix(">=")
    environment = {"python_full_version": f"{oldest}.0"}
    [resolved] = [
        requirement.specifier
        for requirement, _ in locked(lock)
        if requirement.name == "jax" and requirement.marker.evaluate(environment)
    ]
    assert str(floor).removeprefix(">=") == str(resolved).removeprefix("==")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_pins_actions_needs_no_secret_and_may_only_read(workflow) -> None:
    text = workflow.read_text()
    uses = re.findall(r"uses: (.+)", text)
    assert uses
    for line in uses:
        assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    assert "secrets." not in text
    assert "pull_request_target" not in text
    parsed = yaml.safe_load(text)
    assert parsed["permissions"] == {"contents": "read"}
    assert "group" in parsed["concurrency"]
    # A self-hosted runner never sees a pull request.
    own = any("self-hosted" in job["runs-on"] for job in parsed["jobs"].values())
    triggers = parsed[True]  # YAML 1.1 reads the key "on" as true
    assert not (own and {"push", "pull_request"} & set(triggers))


def test_the_readmes_chapter_runs() -> None:
    from myst_nb.core.read import read_myst_markdown_notebook

    blocks = re.findall(r"^````markdown\n(.*?)^````$", README, re.M | re.S)
    [chapter] = [block for block in blocks if block.startswith("---")]
    cells = read_myst_markdown_notebook(chapter).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    namespace: dict[str, object] = {}
    exec("\n".join(code), namespace)
    [shown] = re.findall(r"\{value\}`(.+?)`", chapter)
    assert eval(shown, namespace) == 10


def test_the_way_of_a_cell_names_files_that_are_there() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text()
    way = told[told.index("## The way") : told.index("## Write a chapter")]
    named = re.findall(r"`([a-z_]+/(?:[a-z_]+\.py)?|[a-z_]+\.py)`", way)
    engine = ROOT / "src" / "executed_book"
    assert [name for name in named if not (engine / name).exists()] == []


#: The way of a cell, as CONTRIBUTING.md tells it: a model below the rooms, a book and
#: what is made of it above them.
WAY = [
    *("errors", "files", "figures", "model", "settings"),
    *("names", "reading", "running", "checking", "programs"),
    *("book", "showing", "commands", "__main__", "__init__"),
]


def rooms_used(path: Path, engine: Path) -> set[str]:
    """The rooms and modules of the engine that a file imports from."""
    folder, found = path.relative_to(engine).parts[:-1], set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = folder[: len(folder) - node.level + 1]
            names = node.module.split(".") if node.module else [node.names[0].name]
            found.add((*base, *names)[0])
    return found


def test_each_room_uses_only_those_before_it() -> None:
    engine = ROOT / "src" / "executed_book"
    backwards = [
        f"{path.relative_to(engine)} uses {used}"
        for path in engine.rglob("*.py")
        for used in rooms_used(path, engine)
        if WAY.index(used) > WAY.index(path.relative_to(engine).parts[0].split(".")[0])
    ]
    assert backwards == []
