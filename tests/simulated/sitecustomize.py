"""Another machine, simulated: an accelerator, or a CPU that rounds differently.

With `ULPS=3`, say, normal random numbers are three units in the last place larger. What
starts from them goes another way wherever rounding decides: a training above all.

The accelerator is another platform name over JAX's own CPU client. With
`JAX_PLATFORMS=pretend,cpu`, the default devices are of a kind called Pretend and of a
client of their own, so an array on them is not one on the CPU's. What else they do
differently is said in the variable PRETEND, a JSON object:

- `stderr`: text that each compilation writes to stderr below Python.
- `flops`: what `cost_analysis` reports, whatever the program.
- `temporaries`: what part of the temporaries `memory_analysis` reports.
- `raises`: a function's name, and what compiling it raises.
- `kernels`: how many instructions the optimized HLO has besides.
- `ends`: the name of a function whose compilation ends the process.

Subnormal results, library calls and asynchronous copies it does not simulate.
"""

import functools
import importlib.abc
import importlib.machinery
import json
import os
import sys
from types import ModuleType
from typing import Any

NAME, KIND = "pretend", "Pretend"
FACTOR = 1 + int(os.environ.get("ULPS", "0")) * 2.0**-23


class _AfterImport(importlib.abc.MetaPathFinder):
    """Changes modules as soon as somebody has imported them; it imports none itself."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        change = {"jax": _change_jax, "numpy.random": _scale_numpy}.get(name)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.loader is not None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _change_jax(jax: Any) -> None:
    if NAME in os.environ.get("JAX_PLATFORMS", ""):
        _simulate(jax, json.loads(os.environ.get("PRETEND", "{}")))
    for name in ("normal", "truncated_normal") if FACTOR != 1 else ():
        scaled = _scaled(getattr(jax.random, name))
        for module in (jax.random, jax._src.random):  # initializers use the second
            setattr(module, name, scaled)


def _scaled(draw: Any) -> Any:
    @functools.wraps(draw)
    def scaled(*args: Any, **options: Any) -> Any:
        numbers = draw(*args, **options)
        return numbers * numbers.dtype.type(FACTOR)

    return scaled


def _scale_numpy(random: Any) -> None:
    if FACTOR == 1:
        return

    class Generator(random.Generator):  # type: ignore[misc]
        def normal(self, *args: Any, **options: Any) -> Any:
            return super().normal(*args, **options) * FACTOR

    default = random.default_rng
    random.default_rng = lambda seed=None: Generator(default(seed).bit_generator)


def _simulate(jax: Any, how: dict[str, Any]) -> None:
    from jax._src import xla_bridge

    xla_bridge.register_backend_factory(NAME, xla_bridge.make_cpu_client, priority=500)
    real_devices, real_backend = jax.devices, jax.default_backend

    def is_pretended() -> bool:
        return NAME in (jax.config.jax_platforms or "")

    def devices(backend: str | None = None) -> Any:
        return real_devices({"gpu": NAME, "cuda": NAME}.get(backend or "", backend))

    def default_backend() -> str:
        return "gpu" if is_pretended() else real_backend()

    jax.devices, jax.default_backend = devices, default_backend
    _rename(jax, is_pretended)
    _change_compiling(jax, how, is_pretended)


#: What the devices say of their memory.
_BOOKS = {"bytes_in_use": 1000, "peak_bytes_in_use": 2000, "bytes_limit": 3000}


def _rename(jax: Any, is_pretended: Any) -> None:
    """Give the devices a name and books. JAX is imported, and no client is started."""
    from jaxlib import _jax

    real = _jax.Device.device_kind.fget  # type: ignore[attr-defined]
    real_stats = _jax.Device.memory_stats

    def is_ours(device: Any) -> bool:
        return is_pretended() and device.client is jax.devices()[0].client

    def device_kind(device: Any) -> Any:
        return KIND if is_ours(device) else real(device)

    def memory_stats(device: Any) -> Any:
        return dict(_BOOKS) if is_ours(device) else real_stats(device)

    _jax.Device.memory_stats = memory_stats  # type: ignore[method-assign]
    _jax.Device.device_kind = property(device_kind)  # type: ignore[assignment,misc]


def _change_compiling(jax: Any, how: dict[str, Any], is_pretended: Any) -> None:
    from jax import stages

    real = {name: getattr(stages.Compiled, name) for name in _ANALYSES}

    def is_ours(compiled: Any) -> bool:
        device = compiled.runtime_executable().local_devices()[0]
        return is_pretended() and device.client is jax.devices()[0].client

    def cost_analysis(compiled: Any) -> Any:
        found = real["cost_analysis"](compiled)
        told = "flops" in how and is_ours(compiled)
        return {**found, "flops": how["flops"]} if told else found

    def memory_analysis(compiled: Any) -> Any:
        found = real["memory_analysis"](compiled)
        told = "temporaries" in how and is_ours(compiled)
        return _Sizes(found, how["temporaries"]) if told else found

    def as_text(compiled: Any) -> Any:
        text = real["as_text"](compiled)
        told = "kernels" in how and is_ours(compiled)
        return _with_more(text, how["kernels"]) if told else text

    stages.Compiled.cost_analysis = cost_analysis  # type: ignore[method-assign]
    stages.Compiled.memory_analysis = memory_analysis  # type: ignore[method-assign]
    stages.Compiled.as_text = as_text  # type: ignore[method-assign]
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, fun_name="", **_: (
            _speak(jax, how, fun_name)
            if event.endswith("backend_compile_duration") and is_pretended()
            else None
        )
    )


_ANALYSES = ("cost_analysis", "memory_analysis", "as_text")


class _Sizes:
    """What a compiled program needs, with other temporaries."""

    def __init__(self, real: Any, part: float) -> None:
        self._real = real
        self.temp_size_in_bytes = int(real.temp_size_in_bytes * part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _with_more(text: str, count: int) -> str:
    """Optimized HLO with some copies of its first parameter added to its entry.

    A program whose arguments are all unused has no parameter, and stays as it is.
    """
    if "parameter(0)" not in text.partition("ENTRY ")[2]:
        return text
    head, mark, entry = text.partition("ENTRY ")
    lines = entry.split("\n")
    parameter = next(line for line in lines if "parameter(0)" in line)
    name, _, shape = parameter.strip().partition(" = ")
    kind = shape.split(" ")[0]
    more = [f"  %pretended.{i} = {kind} copy({name})" for i in range(count)]
    end = lines.index("}")  # after all others, so that these keep their numbers
    return head + mark + "\n".join([*lines[:end], *more, *lines[end:]])


def _speak(jax: Any, how: dict[str, Any], function: str) -> None:
    if "stderr" in how:
        os.write(2, how["stderr"].encode())
    if how.get("ends") and how["ends"] in function:
        os.abort()
    name, words = how.get("raises", ("", ""))
    if name and name in function:
        raise jax.errors.JaxRuntimeError(words)


sys.meta_path.insert(0, _AfterImport())
