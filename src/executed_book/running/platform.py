"""The platform that chapters run on: whether JAX starts there, with which devices."""

import os
import subprocess
import sys
from importlib.util import find_spec

from ..errors import BookError
from .workers import worker_environment


def platform_name() -> str:
    """The devices that chapters will see, as text for the cache's key.

    On the CPU the environment says it all; elsewhere JAX is asked.
    """
    chosen = worker_environment()["JAX_PLATFORMS"]
    return chosen if chosen == "cpu" else _ask_jax(chosen)


def check_platform() -> None:
    """Have JAX start once where the environment says how it is to start.

    Raises:
        BookError: it does not; chapters would each say so in words of their own.
    """
    environment = worker_environment()
    steering = [n for n in environment if n.startswith(("JAX_", "XLA_"))]
    is_on_cpu = environment["JAX_PLATFORMS"] == "cpu"
    if is_on_cpu and steering != ["JAX_PLATFORMS"] and find_spec("jax"):
        _ask_jax("cpu")


_ASK = """
import sys, jax
try:
    devices = jax.devices()
except Exception as error:
    text = str(error) or "no such platform is installed here"
    sys.exit(f"{type(error).__name__}: {text}".replace("AssertionError: ", ""))
wanted, backend = sys.argv[1].partition(",")[0], jax.default_backend()
if backend == "cpu" and wanted not in ("", "cpu"):  # JAX took the next in silence
    sys.exit(f"Error: {wanted!r} is not here")
print(backend, devices[0].device_kind, len(devices))
"""


def _ask_jax(chosen: str) -> str:
    asked = subprocess.run(
        [sys.executable, "-P", "-c", _ASK, chosen],
        env=worker_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        lines = [line for line in asked.stderr.splitlines() if line.strip()]
        variables = ", ".join(
            f"{n}={v}" for n, v in os.environ.items() if n.startswith(("JAX_", "XLA_"))
        )
        raise BookError(
            f"JAX does not start on the platform {chosen!r}: {_reason(lines)}\n"
            f"    → correct or unset what steers it: {variables or 'nothing is set'}"
        )
    return asked.stdout.strip()


def _reason(lines: list[str]) -> str:
    """The line of a dying process that says why."""
    telling = [s for s in lines if "Unknown flag" in s or "Error: " in s]
    return (telling or lines or ["it said nothing"])[-1].strip()
