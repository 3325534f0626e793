#!/usr/bin/env python3
"""What can be done with this repository: `python3 noxfile.py --list` names it all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def bootstrap() -> None:
    """Start again in an environment that holds the locked nox."""
    home, lock = ROOT / ".nox" / "bootstrap", ROOT / "requirements-nox.txt"
    if Path(sys.prefix) == home:
        sys.exit("The nox in .nox/bootstrap is broken: delete that folder, try again.")
    python, installed = home / "bin" / "python", home / lock.name
    if not (installed.exists() and installed.read_bytes() == lock.read_bytes()):
        print("Installing the locked nox into .nox/bootstrap", flush=True)
        # The caller's pip installs: some systems ship Python without venv's copy.
        me, quiet = [sys.executable, "-m"], ["--quiet", "--require-hashes"]
        subprocess.check_call([*me, "venv", "--clear", "--without-pip", str(home)])
        pip = [*me, "pip", f"--python={python}", "install", *quiet]
        subprocess.check_call([*pip, f"-r{lock}"])
        shutil.copy(lock, installed)
    os.execv(python, [str(python), str(ROOT / "noxfile.py"), *sys.argv[1:]])


try:
    import nox
except ImportError:
    bootstrap()


def is_here(version: str) -> bool:
    """Whether this Python is here, and not only a shim without a version behind it."""
    if version == f"3.{sys.version_info.minor}":
        return True
    command = [shutil.which(f"python{version}") or "false", "--version"]
    return not subprocess.run(command, capture_output=True, check=False).returncode


# The lock resolves per Python: the oldest gets the oldest supported JAX, all others
# the newest, which builds the book. A Python newer than those listed does as well.
*NEWER, OLDEST = (ROOT / ".python-version").read_text().split()
RUNNING = [f"3.{sys.version_info.minor}"] if sys.version_info >= (3, 12) else []
NEWEST = next(filter(is_here, [*NEWER, *RUNNING]), None)
if NEWEST is None:
    sys.exit(f"The book needs Python {NEWER[-1]} or later: install one first.")

# uv is faster, but reads no settings of pip's: it gets these (the first counts).
CONFIG = [sys.executable, "-m", "pip", "config", "list"]
TOLD = subprocess.run(CONFIG, capture_output=True, text=True, check=False).stdout
SETTINGS = dict(re.findall(r"([\w-]+)='(.*)'", TOLD.replace(r"\n", " "))[::-1])
PLACES = ("index-url", "extra-index-url", "find-links")
WHERE = [f"--{name}={x}" for name in PLACES for x in SETTINGS.pop(name, "").split()]
CERT = {"SSL_CERT_FILE": SETTINGS.pop("cert", os.environ.get("SSL_CERT_FILE"))}
uses_pip = re.search("index|links|cert|host|proxy", " ".join(SETTINGS))
nox.options.default_venv_backend = "virtualenv" if uses_pip else "uv|virtualenv"
nox.options.reuse_venv = "yes"

CPU = {"JAX_PLATFORMS": "cpu"}
# The instruments, and the engine that executes the book.
PROJECTS = [Path("pyproject.toml"), Path("src/executed_book/pyproject.toml")]
OF_THE_INSTRUMENTS = ("tests/instruments", "src/justafter")


def install(session: nox.Session, *locks: str, others: list[str] = ()) -> None:
    """Install what is locked and both packages, unless that is done; then `others`."""
    files = [Path(f"requirements-{name}.txt") for name in locks]
    wanted = "".join([str(ROOT), *(file.read_text() for file in (*files, *PROJECTS))])
    installed = Path(session.virtualenv.location, "installed")
    if not installed.exists() or installed.read_text() != wanted:
        installed.unlink(missing_ok=True)
        # Python compiles what it imports; all modules of all packages take a minute.
        locked = ("--no-compile", "--require-hashes", *(f"-r{f}" for f in files))
        session.install(*WHERE, *locked, env=CERT)
        # The build backend is locked with the rest, so no isolated build fetches it.
        packages = [f"-e{project.parent}" for project in PROJECTS]
        session.install("--no-deps", "--no-build-isolation", *packages)
        installed.write_text(wanted)
    if others:
        installed.unlink()  # from here on it is not the locked environment
        session.install(*WHERE, "--upgrade", *others, env=CERT)


def python(session: nox.Session, *args: str, env: dict[str, str] = CPU) -> None:
    """Run Python with exactly this repository's packages in view."""
    # An interrupted build has processes to end, and says what became of its work.
    patience = {"interrupt_timeout": 10.0, "terminate_timeout": 5.0}
    # Where nothing compiled is kept, as in many images, importing JAX takes 3 s more.
    ours = {"PYTHONPATH": None, "PYTHONDONTWRITEBYTECODE": None}
    session.run("python", *args, env={**ours, **env}, **patience)


@nox.session(python=NEWEST)
def docs(session: nox.Session) -> None:
    """Execute and build the book into _build/html; `-- --serve` to watch it live."""
    install(session, "docs")
    if "--serve" in session.posargs:
        watch = ("--watch=conf", "--watch=examples", "--watch=src", "-c", "conf")
        python(session, "-m", "sphinx_autobuild", *watch, "docs", "_build/serve")
    else:
        python(session, "-m", "executed_book", "build", *session.posargs)


@nox.session(python=[OLDEST, NEWEST])
def tests(session: nox.Session) -> None:
    """Test both packages and the book; `-- PATH ...` for some tests alone.

    On the oldest Python, with the oldest JAX, run the tests of what readers install.
    """
    install(session, "tests")
    # Most tests start commands and wait: more of them at once than there are cores.
    together = ("-n3", "--dist=loadfile", "--no-loadscope-reorder", "--durations=20")
    oldest = (*OF_THE_INSTRUMENTS, "tests/book/reading", "tests/book/running")
    every = (*together, *(oldest if session.python == OLDEST else ()))
    python(session, "-m", "pytest", *(session.posargs or every))


@nox.session(python=False, default=False)
def site(session: nox.Session) -> None:
    """Look at every page of _build/html in a browser: search, weight, axe."""
    tests = (sys.executable, __file__, "-s", f"tests-{NEWEST}", "--", "-m", "site")
    # Half of the time a page is waited for: more of them at once than there are cores.
    together = ("-n4", "--dist=worksteal", "--durations=5", "tests/site")
    session.run(*tests, *together, *session.posargs, external=True)


@nox.session(python=NEWEST, default=True)
def lint(session: nox.Session) -> None:
    """Check style, formatting, spelling, wording and types."""
    install(session, "docs", "lint")  # types are those of what is installed
    tools = "ruff check, ruff format --check, codespell, python -m tests.language, mypy"
    for tool in tools.split(", "):
        session.run(*tool.split())


@nox.session(python=NEWEST, default=False)
def lab(session: nox.Session) -> None:
    """Open the notebooks of _build/html in JupyterLab, with all that they need.

    They are copied to _build/lab, where what you write into them stays. Delete one to
    have it as the book has it now.
    """
    install(session, "docs", "lab")
    taken = Path("_build/html/_downloads")
    if not taken.is_dir():
        python(session, "-m", "executed_book", "build")
    for path in sorted(taken.rglob("*.ipynb")):
        copy = Path("_build/lab", path.relative_to(taken))
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    python(session, "-m", "jupyterlab", "_build/lab", *session.posargs)


@nox.session(python=NEWEST, default=False)
def pin(session: nox.Session) -> None:
    """Accept the outputs as they are now, and show them; `-- CHAPTER` for some."""
    install(session, "docs")
    only = ["--only", *session.posargs] if session.posargs else []
    python(session, "-m", "executed_book", "pin", *only)


@nox.session(python=NEWEST, default=False)
def weekly(session: nox.Session) -> None:
    """Test what takes too long for every push; `-- PATH ...` for a part of it."""
    install(session, "tests")
    # What the whole systems reach goes to outputs/systems, for the chapters' tables.
    command = ("-m", "pytest", "-m", "weekly", "--durations=0", *session.posargs)
    python(session, *command, env={**CPU, "KEEP_FIGURES": "1"})
    if not session.posargs:
        python(session, "-m", "executed_book", "verify")


@nox.session(python=[OLDEST, NEWEST], default=False)
def instruments(session: nox.Session) -> None:
    """Try the instruments on libraries and on all public functions of JAX.

    `-- jax flax` tries them on the newest releases of these, whatever the locks say.
    """
    install(session, "tests", others=session.posargs)
    python(session, "-m", "pytest", "-n2", "--dist=loadfile", *OF_THE_INSTRUMENTS)
    python(session, "-m", "tests.instruments.lens_sweep")


@nox.session(python=NEWEST, default=False)
def bench(session: nox.Session) -> None:
    """Measure what the book's tools cost, as ratios within one run."""
    install(session, "tests")
    for script in sorted(Path("tests/bench").glob("bench_*.py")):
        python(session, "-m", f"tests.bench.{script.stem}", *session.posargs)


@nox.session(python=NEWEST, default=False)
def editions(session: nox.Session) -> None:
    """Make the book as an EPUB and, of _build/html, as a PDF, into _build/editions."""
    install(session, "tests")
    shutil.rmtree("_build/epub", ignore_errors=True)  # what lies there goes into it
    place = ("-c", "conf", "-d", "_build/epub-doctrees", "docs", "_build/epub")
    python(session, "-m", "sphinx", "-q", "-t", "epub", "-b", "epub", *place)
    name = "just-after-execution"
    Path("_build/editions").mkdir(exist_ok=True)
    shutil.copy(f"_build/epub/{name}.epub", "_build/editions")
    python(session, "conf/editions.py", "_build/html", f"_build/editions/{name}.pdf")


@nox.session(python=NEWEST, default=False)
def drift(session: nox.Session) -> None:
    """Record the book with another version, and what changes; `-- "jax==0.11.2"`."""
    install(session, "docs", others=session.posargs)
    python(session, "-m", "executed_book", "record")
    python(session, "-m", "executed_book", "releases")


@nox.session(python=NEWEST, default=False)
def linkcheck(session: nox.Session) -> None:
    """Follow every link of the book to other sites."""
    install(session, "docs")
    python(session, "-m", "sphinx", "-cconf", "-blinkcheck", "docs", "_build/linkcheck")


@nox.session(python=NEWEST, default=False)
def docs_gpu(session: nox.Session) -> None:
    """Record the book on a GPU, and build it into _build/gpu; `-- CHAPTER` records."""
    # The kernels of several chapters share the GPU, so none may take it all.
    env = {"JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    record(session, "gpu", bool(shutil.which("nvidia-smi")), env)


@nox.session(python=NEWEST, default=False)
def docs_tpu(session: nox.Session) -> None:
    """Record the book on a TPU, and build it into _build/tpu; `-- CHAPTER` records."""
    found = any([*Path("/dev").glob("accel*"), *Path("/dev/vfio").glob("[0-9]*")])
    env = {"JAX_PLATFORMS": "tpu,cpu"}
    record(session, "tpu", found, env, "--jobs=1")  # it belongs to one process


def record(session, kind: str, found: bool, env: dict[str, str], *options) -> None:
    """Record the chapters that are named; or all of them, and then publish the site."""
    if not found:
        session.error(f"This machine has no {kind.upper()}: nothing was installed")
    install(session, "docs", kind)
    tool, place = ("-m", "executed_book"), ("--output", f"_build/{kind}")
    only = ["--only", *session.posargs] if session.posargs else []
    python(session, *tool, "record", *options, *only, env=env)
    if not only:
        python(session, *tool, "build", *options, *place, env=env)


@nox.session(python=NEWEST, default=False)
def lock(session: nox.Session) -> None:
    """Bring the locked requirements in step with pyproject.toml; `-- --upgrade`."""
    session.install(*WHERE, "--require-hashes", "-rrequirements-nox.txt", env=CERT)
    options = (*WHERE, "--python-version", OLDEST, "--quiet", *session.posargs)
    locks = nox.project.load_toml("pyproject.toml")["tool"]["locks"]
    for name, sources in locks.items():
        output = f"--output-file=requirements-{name}.txt"
        session.run("uv", "pip", "compile", *options, *sources, output, env=CERT)


if __name__ == "__main__":
    os.chdir(ROOT)
    nox.main()
