#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["nox>=2025.2.9"]
# ///
"""What can be done with this repository: `python3 noxfile.py --list` names it all."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def bootstrap() -> None:
    """Start again in a private environment that holds the locked nox."""
    if sys.version_info < (3, 11):  # noqa: UP036 (that older Python says so)
        sys.exit(f"This needs Python 3.11 or later; {sys.executable} is older.")
    home = ROOT / ".nox" / "bootstrap"
    if Path(sys.prefix) == home:
        sys.exit("The nox in .nox/bootstrap is broken: delete that folder, try again.")
    try:
        import venv
    except ImportError:
        sys.exit("This needs Python's venv module (on Debian: python3-venv).")

    lock, python = ROOT / "requirements-nox.txt", home / "bin" / "python"
    installed = home / lock.name  # a copy of the lock, written when all is in place
    try:
        home.parent.mkdir(exist_ok=True)
        only_one = (home.parent / "bootstrap.lock").open("w")
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}; work in a copy that is yours.")
    with only_one:
        fcntl.flock(only_one, fcntl.LOCK_EX)
        if not (
            python.exists()
            and installed.exists()
            and installed.read_bytes() == lock.read_bytes()
        ):
            print("Installing the locked nox into .nox/bootstrap", flush=True)
            venv.create(home, clear=True, symlinks=True)
            # The caller's own pip installs into the new environment, because
            # some systems ship Python without the copy of pip that venv adds.
            pip = [sys.executable, "-m", "pip", f"--python={python}", "install"]
            if subprocess.call([*pip, "--quiet", "--require-hashes", f"-r{lock}"]):
                sys.exit("pip could not install nox; its own message is above.")
            installed.write_bytes(lock.read_bytes())
    os.execv(python, [str(python), str(ROOT / "noxfile.py"), *sys.argv[1:]])


try:
    import nox
    from nox import main, project
    from nox.command import CommandFailed
except ImportError:  # no nox here, or one too old to have these names
    bootstrap()


# uv reads none of pip's settings. Where pip is told which index, certificate or
# proxy to use, pip installs, so that whatever pip can reach is enough.
REACH = "index-url|extra-index-url|find-links|no-index|cert|client-cert|proxy"


def pip_is_configured() -> bool:
    """Whether this machine tells pip how to reach packages."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    return bool(re.search(rf"\.({REACH}|trusted-host)=", listed.stdout))


def runs(version: str) -> bool:
    """Whether this Python is here, and not only a shim without a version behind it."""
    if version == f"3.{sys.version_info.minor}":
        return True
    try:
        command = [f"python{version}", "--version"]
        subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def named_on_path() -> set[str]:
    """The versions of Python 3 that the search path names, and the one that runs."""
    folders = [Path(name) for name in os.environ.get("PATH", "").split(os.pathsep)]
    files = [file for folder in folders for file in folder.glob("python3.*")]
    names = [re.fullmatch(r"python(3\.\d+)", file.name) for file in files]
    return {name[1] for name in names if name} | {f"3.{sys.version_info.minor}"}


def best_present(listed: list[str], oldest: str) -> str | None:
    """The Python to build with: the newest listed one that is here, or a newer one.

    Of versions that are newer than all listed ones the nearest is taken, since JAX has
    wheels for it before it has them for the others.
    """

    def minor(version: str) -> int:
        return int(version.partition(".")[2])

    least = minor(oldest)
    others = sorted(named_on_path() - set(listed), key=minor)
    newer = [version for version in others if minor(version) > least]
    return next(filter(runs, [*sorted(listed, key=minor, reverse=True), *newer]), None)


# The lock resolves per Python: the oldest one gets the oldest supported JAX, all
# others get the newest JAX.
OLDEST, *NEWER = project.python_versions(project.load_toml(ROOT / "pyproject.toml"))
NEWEST = best_present(NEWER, OLDEST)
if NEWEST is None:
    sys.exit(
        f"The book needs Python {NEWER[0]} or later, and none is here: install one, for"
        f" instance with `uv python install {NEWER[-1]}`."
    )

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = (
    "virtualenv" if pip_is_configured() else "uv|virtualenv"
)
nox.options.reuse_venv = "yes"
# The oldest Python may be missing: nox fetches it if it can, or says that it left that
# session out. Where both must run, a missing one is an error.
nox.options.error_on_missing_interpreters = bool(os.environ.get("CI"))
os.environ.setdefault("UV_SYSTEM_CERTS", "1")  # as pip does


@nox.session(python=NEWEST, default=True)
def docs(session: nox.Session) -> None:
    """Execute and build the book into _build/html; `-- --serve` to watch it live."""
    _install(session, "docs")
    if "--serve" in session.posargs:
        _serve(session)
    else:
        _build(session, "_build/html", {"JAX_PLATFORMS": "cpu"})


@nox.session(python=[OLDEST, NEWEST], default=True)
def tests(session: nox.Session) -> None:
    """Run all tests on the oldest and the newest supported Python and JAX."""
    _install(session, "tests")
    env, pytest = {"JAX_PLATFORMS": "cpu"}, ("-m", "pytest")
    if session.posargs:
        _python(session, *pytest, *session.posargs, env=env)
        return
    # The tests of the pages measure, and share the work between the cores themselves.
    # Most others start commands and wait for them: more of these than there are cores.
    shared = (
        *("-n3", "--dist=loadfile", "--no-loadscope-reorder"),
        *("--durations=25", "--ignore=tests/docs"),
    )
    parts = [shared, ("--durations=5", "tests/docs")]
    if session.python == OLDEST:  # the book is built on the newest
        parts = [(*parts[0], "--ignore=tests/book", "--ignore=tests/browser")]
    failed = []
    for part in parts:
        try:
            _python(session, *pytest, *part, env=env)
        except CommandFailed:
            failed.append(" ".join(part))
    if failed:
        session.error(f"Tests failed: {'; '.join(failed)}")


@nox.session(python=NEWEST, default=False)
def site(session: nox.Session) -> None:
    """Look at every page of _build/html in a browser: search, weight, axe."""
    _install(session, "tests")
    # Half of the time a page is waited for: more of them at once than there are cores.
    together = ("-n4", "--dist=worksteal")
    command = ("-m", "pytest", "-m", "site", *together, "--durations=5", "tests/site")
    _python(session, *command, *session.posargs, env={"JAX_PLATFORMS": "cpu"})


@nox.session(python=NEWEST, default=False)
def editions(session: nox.Session) -> None:
    """Make the whole book as an EPUB and, of _build/html, as a PDF.

    They lie in _build/editions. A site that was built with BOOK_EDITIONS set links
    them from its landing page.
    """
    _install(session, "tests")
    folder = Path("_build/editions")
    folder.mkdir(parents=True, exist_ok=True)
    env = {"JAX_PLATFORMS": "cpu"}
    made, name = Path("_build/epub"), "just-after-execution"
    shutil.rmtree(made, ignore_errors=True)  # what lies there goes into the book
    sphinx = ("-m", "sphinx", "-q", "-t", "epub", "-b", "epub", "-c", "conf")
    doctrees = ("-d", "_build/epub-doctrees")
    _python(session, *sphinx, *doctrees, "docs", str(made), env=env)
    shutil.copyfile(made / f"{name}.epub", folder / f"{name}.epub")
    _python(session, "conf/editions.py", "_build/html", f"{folder / name}.pdf", env=env)


@nox.session(python=NEWEST, default=False)
def wheels(session: nox.Session) -> None:
    """Build both packages into _build/wheels, as they are published."""
    _install(session, "docs")
    folder = str(ROOT / "_build" / "wheels")
    for project_file in PROJECTS:
        with session.chdir(Path(project_file).parent):
            _python(session, "-m", "hatchling", "build", "-d", folder, env={})


@nox.session(python=NEWEST, default=False)
def systems(session: nox.Session) -> None:
    """Train every whole system at its real size, with three seeds, and judge it.

    The session `tests` trains the same programs at their smallest size alone. What is
    found here goes to `outputs/systems`, from where the chapters take their tables.
    """
    _install(session, "tests")
    command = ("-m", "pytest", "-m", "systems", "--durations=0", "tests/examples")
    env = {"JAX_PLATFORMS": "cpu"}
    _python(session, *command, *session.posargs, env={**env, "KEEP_FIGURES": "1"})
    if not session.posargs:
        # On pages that train, a program repeats the training: too long for the tests.
        _python(session, "-m", "executed_book", "verify", env=env)


@nox.session(python=[OLDEST, NEWEST], default=False)
def instruments(session: nox.Session) -> None:
    """Try the instruments on libraries and on all public functions of JAX.

    With `-- --upgrade` on the newest releases, whatever the locks say; further
    arguments are requirements, such as `-- "flax==0.12.1"`.
    """
    _install(session, "tests")
    wanted = [one for one in session.posargs if one != "--upgrade"]
    if "--upgrade" in session.posargs:
        table = project.load_toml(ROOT / "pyproject.toml")
        wanted += project.dependency_groups(table, "field", "libraries")
        wanted += table["project"]["dependencies"]
    if wanted:
        # From here on the environment is not the locked one: have it made anew.
        Path(session.virtualenv.location, "installed").unlink()
        session.install(*wanted, "--upgrade")
    env = {"JAX_PLATFORMS": "cpu"}
    tried = ("-n2", "--dist=loadfile", *TESTS_OF_THE_INSTRUMENTS)
    failed = []
    for part in (("-m", "pytest", *tried), ("-m", "tests.instruments.lens_sweep")):
        try:
            _python(session, *part, env=env)
        except CommandFailed:
            failed.append(part[1])
    if failed:
        session.error(f"Failed: {'; '.join(failed)}")


@nox.session(python=NEWEST, default=False)
def corpus(session: nox.Session) -> None:
    """Run the programs of several hundred small pages against their pages.

    The session `tests` runs those of a hundred random pages alone.
    """
    _install(session, "tests")
    command = ("-m", "pytest", "-m", "corpus", "-n2", "-rP", "tests/book/programs")
    _python(session, *command, *session.posargs, env={"JAX_PLATFORMS": "cpu"})


@nox.session(python=NEWEST, default=False)
def coverage(session: nox.Session) -> None:
    """Show what of both packages no test runs; `-- PATH ...` for some tests alone.

    What runs in commands, in forks and in fresh interpreters counts. Without arguments
    the tests of the instruments and of the engine run, but not those of its programs.
    """
    _install(session, "tests")
    data = Path(session.create_tmp()).resolve() / "coverage"
    env = {"JAX_PLATFORMS": "cpu", "COVERAGE_FILE": str(data)}
    tool = ("-m", "coverage")
    _python(session, *tool, "erase", env=env)
    engine = ("tests/book", "--ignore=tests/book/programs")
    tests = session.posargs or (*engine, *TESTS_OF_THE_INSTRUMENTS)
    failed = False
    try:
        _python(session, *tool, "run", "-m", "pytest", *tests, env=env)
    except CommandFailed:
        failed = True
    _python(session, *tool, "combine", "--quiet", env=env)
    for package in ("executed_book", "justafter"):
        with contextlib.suppress(CommandFailed):  # of one that nothing ran
            _python(session, *tool, "report", f"--include=src/{package}/*", env=env)
    if failed:
        session.error("Tests failed: what they were to run is missing above")


@nox.session(python=NEWEST, default=True)
def lint(session: nox.Session) -> None:
    """Check style, formatting, spelling and types."""
    _install(session, "docs", "lint")  # types are those of what is installed
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("codespell")
    session.run("mypy")


@nox.session(python=NEWEST, default=False)
def pin(session: nox.Session) -> None:
    """Accept the outputs as they are now, and show them; `-- CHAPTER` for some."""
    _install(session, "docs")
    only = ["--only", *session.posargs] if session.posargs else []
    _python(session, "-m", "executed_book", "pin", *only, env={"JAX_PLATFORMS": "cpu"})


@nox.session(python=NEWEST, default=False)
def drift(session: nox.Session) -> None:
    """Execute the book on another version and list what changes; `-- "jax==0.11.2"`."""
    if not session.posargs:
        session.error('Say which version, for instance: -- "jax==0.11.2"')
    _install(session, "docs")
    folder = Path(session.create_tmp())
    env = {"JAX_PLATFORMS": "cpu"}
    tool = ("-m", "executed_book")
    base, other = folder / "base.json", folder / "other.json"
    _python(session, *tool, "snapshot", str(base), env=env)
    # From here on the environment is not the locked one: have it made anew.
    Path(session.virtualenv.location, "installed").unlink()
    session.install(*session.posargs)
    _python(session, *tool, "snapshot", str(other), env=env)
    _python(session, *tool, "drift", str(base), str(other), env=env)


@nox.session(python=NEWEST, default=False)
def references(session: nox.Session) -> None:
    """Fetch anew what other projects document, for the links of names; see the diff.

    `-- python=objects.inv` takes one list from a file, such as a package of the
    documentation brings.
    """
    _install(session, "docs")
    _python(session, "conf/references.py", *session.posargs, env={})


@nox.session(python=NEWEST, default=False)
def linkcheck(session: nox.Session) -> None:
    """Follow every link of the book to other sites."""
    _install(session, "docs")
    sphinx = ["-m", "sphinx", "-b", "linkcheck", "-c", "conf"]
    _python(session, *sphinx, "docs", "_build/linkcheck", env={"JAX_PLATFORMS": "cpu"})


@nox.session(python=NEWEST, default=False)
def docs_gpu(session: nox.Session) -> None:
    """Record the book on a GPU, and build it into _build/gpu; `-- CHAPTER` records."""
    _require_hardware(session, _gpus(), "GPU (no driver that nvidia-smi can reach)")
    _install(session, "docs", "gpu")
    # The kernels of several chapters share the GPU, so none may take it all.
    env = {"JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    _require_devices(session, "gpu", env)
    _record(session, "_build/gpu", env)


@nox.session(python=NEWEST, default=False)
def docs_tpu(session: nox.Session) -> None:
    """Record the book on a TPU, and build it into _build/tpu; `-- CHAPTER` records."""
    _require_hardware(session, _tpus(), "TPU (no /dev/accel* and no /dev/vfio/N)")
    _install(session, "docs", "tpu")
    env = {"JAX_PLATFORMS": "tpu,cpu"}
    _require_devices(session, "tpu", env)
    # A TPU belongs to one process at a time.
    _record(session, "_build/tpu", env, "--jobs", "1")


@nox.session(python=NEWEST, default=False)
def bench(session: nox.Session) -> None:
    """Measure what the build costs, as ratios within one run."""
    scripts = sorted(ROOT.glob("tests/bench/bench_*.py"))
    if not scripts:
        session.error("There is no tests/bench/bench_*.py to run")
    _install(session, "tests")
    for script in scripts:
        _python(session, str(script), *session.posargs, env={"JAX_PLATFORMS": "cpu"})


@nox.session(python=NEWEST, default=False)
def lock(session: nox.Session) -> None:
    """Bring the locked requirements in step with pyproject.toml; `-- --upgrade`."""
    _install(session, "nox", package=False)
    for name, sources in LOCKS.items():
        session.run(
            *("uv", "pip", "compile", "--universal", "--python-version", OLDEST),
            *("--generate-hashes", "--no-annotate", "--no-header"),
            *("--no-emit-index-url", "--quiet", *sources, *session.posargs),
            *("--output-file", f"requirements-{name}.txt"),
        )


TESTS_OF_THE_INSTRUMENTS = ("tests/instruments", "src/justafter")

# The instruments, and the engine that executes the book.
PROJECTS = ["pyproject.toml", "src/executed_book/pyproject.toml"]

BROUGHT = (
    *("jax", "jaxlib", "ml-dtypes", "opt-einsum", "numpy", "scipy", "matplotlib"),
    *("contourpy", "cycler", "fonttools", "kiwisolver", "pillow", "pyparsing"),
    *("packaging", "python-dateutil", "six"),
)
NOT_IMPORTED = (
    *("babel", "debugpy", "jedi", "parso", "prompt-toolkit", "sqlalchemy", "uvloop"),
    *("wcwidth", "tzdata"),
)

LOCKS = {
    "docs": [*PROJECTS, "--group=docs"],
    "tests": [*PROJECTS, "--group=tests"],
    "lint": ["--group=lint", "--constraints=requirements-docs.txt"],
    "nox": ["--group=nox"],
    # What a machine needs that brings its own JAX, NumPy and Matplotlib: what comes
    # with these is left out, and so is what recording never imports, for its size.
    "record": [
        *("--group=record", "--constraints=requirements-docs.txt"),
        *(f"--no-emit-package={name}" for name in (*BROUGHT, *NOT_IMPORTED)),
    ],
    # Only what JAX needs besides; the rest comes from the book's own lock.
    "gpu": ["--group=gpu", "--constraints=requirements-docs.txt"],
    "tpu": ["--group=tpu", "--constraints=requirements-docs.txt"],
}

SHOW_DEVICES = """
import sys, jax
try:
    devices = jax.devices(sys.argv[1])
except RuntimeError as error:
    sys.exit(f"JAX {jax.__version__} finds no {sys.argv[1]}: {error}")
print(f"JAX {jax.__version__} finds {len(devices)} x {devices[0].device_kind}")
"""


def _install(session: nox.Session, *locks: str, package: bool = True) -> None:
    """Install what is locked, then both packages, unless it is all there already."""
    files = [f"requirements-{name}.txt" for name in locks]
    inputs = [Path(name).read_bytes() for name in (*files, *PROJECTS)]
    state = hashlib.sha256(b"\0".join([str(ROOT).encode(), *inputs])).hexdigest()
    installed = Path(session.virtualenv.location, "installed")
    if installed.exists() and installed.read_text() == state:
        return
    installed.unlink(missing_ok=True)
    session.install("--require-hashes", *(f"-r{name}" for name in files))
    if package:
        # The build backend is locked with the rest, so no isolated build fetches it.
        editable = [f"-e{Path(name).parent}" for name in PROJECTS]
        session.install("--no-deps", "--no-build-isolation", *editable)
    installed.write_text(state)


def _python(session: nox.Session, *args: str, env: dict[str, str]) -> None:
    """Run Python with exactly this repository's package in view.

    An interrupt is the command's own to handle: it has processes to end, and says in a
    line what became of its work. nox would kill it after half a second.
    """
    session.run(
        *("python", *args),
        env={"PYTHONPATH": None, **env},
        interrupt_timeout=10.0,
        terminate_timeout=5.0,
    )


def _build(
    session: nox.Session, output: str, env: dict[str, str], *options: str
) -> None:
    """Execute every chapter and publish the site."""
    command = ["-m", "executed_book", "build", "--source", "docs", "--config", "conf"]
    options = (*options, *session.posargs)
    _python(session, *command, "--output", output, *options, env=env)


def _record(
    session: nox.Session, output: str, env: dict[str, str], *options: str
) -> None:
    """Record the chapters that are named; or all of them, and then publish the site."""
    command = ("-m", "executed_book", "record", *options)
    if session.posargs:
        _python(session, *command, "--only", *session.posargs, env=env)
        return
    _python(session, *command, env=env)
    _build(session, output, env, *options)


def _serve(session: nox.Session) -> None:
    """Serve the book and rebuild what changes; the extension executes it anew."""
    options = [option for option in session.posargs if option != "--serve"]
    folders = [name for name in ("conf", "examples", "src") if Path(name).is_dir()]
    watched = [f"--watch={name}" for name in folders]
    command = ["-m", "sphinx_autobuild", "-c", "conf", *watched, *options]
    _python(session, *command, "docs", "_build/serve", env={"JAX_PLATFORMS": "cpu"})


def _gpus() -> list[str]:
    """The GPUs that the driver names."""
    try:
        command = ["nvidia-smi", "--list-gpus"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return listed.stdout.splitlines()


def _tpus() -> list[str]:
    """The device files through which a TPU is reached."""
    dev = Path("/dev")
    return sorted(map(str, [*dev.glob("accel*"), *dev.glob("vfio/[0-9]*")]))


def _require_hardware(session: nox.Session, found: list[str], missing: str) -> None:
    """Stop before anything large is installed if the hardware is not there."""
    if not found:
        session.error(f"This machine has no {missing}; nothing was installed or built")
    session.log(f"Found {', '.join(found)}")


def _require_devices(session: nox.Session, kind: str, env: dict[str, str]) -> None:
    """Stop if JAX does not see the accelerator; say what it sees otherwise."""
    _python(session, "-c", SHOW_DEVICES, kind, env=env)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
