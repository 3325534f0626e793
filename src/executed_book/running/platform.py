"""The platform that chapters run on: whether JAX starts there, with which devices."""

import os
import subprocess
import sys
from importlib.util import find_spec

from ..errors import BookError
from .workers import worker_environment


def platform_name() -> str:
    """The devices that chapters will see, as text for the cache's key.

    JAX is asked, but for a CPU on which nothing else says how JAX is to start.

    Raises:
        BookError: it does not start; chapters would each say so in words of their own.
    """
    environment = worker_environment()
    chosen = environment["JAX_PLATFORMS"]
    steering = [n for n in environment if n.startswith(("JAX_", "XLA_"))]
    is_plain = steering == ["JAX_PLATFORMS"] or not find_spec("jax")
    return chosen if chosen == "cpu" and is_plain else _ask_jax(chosen)


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
            f"    → correct or unset these variables: {variables}"
        )
    return asked.stdout.strip()


def _reason(lines: list[str]) -> str:
    """The line of a dying process that says why."""
    telling = [s for s in lines if "Unknown flag" in s or "Error: " in s]
    return (telling or lines or ["it printed no message"])[-1].strip()
