"""Where and when numbers were measured."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

import jax
import numpy as np


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where and when numbers were measured.

    Attributes:
        platform: JAX's name for the kind of device, such as ``"cpu"``.
        device_kind: JAX's name for the model of the device, such as ``"NVIDIA H100"``.
        device_count: how many devices JAX saw.
        cpus: how many CPU cores the machine has.
        jax: the version of JAX.
        jaxlib: the version of jaxlib.
        numpy: the version of NumPy.
        python: the version of Python.
        date: date and time, in UTC and ISO 8601.

    Example:
        >>> import jax
        >>> Provenance.now().jax == jax.__version__
        True
    """

    platform: str
    device_kind: str
    device_count: int
    cpus: int
    jax: str
    jaxlib: str
    numpy: str
    python: str
    date: str

    @classmethod
    def now(cls) -> Self:
        """Of this process, at this moment (UTC)."""
        from importlib.metadata import version

        device = jax.devices()[0]
        return cls(
            platform=device.platform,
            device_kind=device.device_kind,
            device_count=jax.device_count(),
            cpus=os.cpu_count() or 1,
            jax=jax.__version__,
            jaxlib=version("jaxlib"),
            numpy=np.__version__,
            python=platform.python_version(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
        )
