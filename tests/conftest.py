"""What holds in every test: the CPU, two devices, and no silent change of dtype."""

import os
import signal

# JAX reads this when it is imported, so it comes before anything imports JAX.
os.environ.setdefault("JAX_PLATFORMS", "cpu")


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
