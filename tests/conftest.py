"""What holds in every test: the CPU, two devices, and no silent change of dtype."""

import os
import signal

import pytest

# JAX reads this when it is imported, so it comes before anything imports JAX.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

#: Files with tests of many seconds each, which several processes share.
LONG = ("examples/test_systems.py", "test_lens_sweep.py", "programs/test_corpus.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long tests, and keep together those that share a fixture.

    These are the tests of a file; of the long ones those of one case.
    """
    items.sort(key=lambda item: not _is_long(item))
    for item in items:
        group = item.nodeid.partition("::")[0]
        if _is_long(item) and (case := getattr(item, "callspec", None)):
            group += f"-{case.params.get('name', case.id)}"
        item.add_marker(pytest.mark.xdist_group(group))


def _is_long(item: pytest.Item) -> bool:
    return item.path.as_posix().endswith(LONG)


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
