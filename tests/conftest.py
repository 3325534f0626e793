"""What holds in every test: the CPU, two devices, and no silent change of dtype."""

import os
import signal
from pathlib import Path

import pytest

# JAX reads this when it is imported, so it comes before anything imports JAX.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

#: Files whose tests take longest, the longest first.
LONG = (
    *("examples/test_systems.py", "examples/test_lm.py", "book/test_stopping.py"),
    *("test_lens_sweep.py", "commands/test_record.py", "tests/test_processes.py"),
    *("book/test_failures.py", "book/test_another_book.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long tests, so that no process is left with one at the end.

    pytest-xdist keeps this order if it is called with `--no-loadscope-reorder`.
    """

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, name in enumerate(LONG) if path.endswith(name)), 99)

    items.sort(key=place)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Import no helper of tests to look for examples in it, unless there are some."""
    if collection_path.suffix != ".py" or collection_path.name.startswith("test_"):
        return None
    return ">>>" not in collection_path.read_text("utf-8") or None


def pytest_configure() -> None:
    """Make JAX raise where it would promote dtypes silently, and give it two devices.

    Interrupts are heard even where the tests were started to run in the background.

    Ranks may be promoted: the instruments are shown what readers write, and readers
    write ``x @ w + b``.
    """
    import jax

    signal.signal(signal.SIGINT, signal.default_int_handler)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_num_cpu_devices", 2)


def pytest_report_header() -> str:
    """Name the JAX under test: the lock chooses it by Python's version."""
    import jax

    return f"jax: {jax.__version__} on {os.environ['JAX_PLATFORMS']}"
