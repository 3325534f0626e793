"""Which platform chapters run on, and what is said where JAX does not start."""

import pytest

from executed_book.running import platform
from executed_book.running.platform import platform_name


def test_a_platform_is_asked_for_only_where_the_environment_does_not_say(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr(platform, "_ask_jax", lambda chosen: f"asked about {chosen}")
    assert platform_name() == "cpu"
    monkeypatch.setenv("JAX_PLATFORMS", "cuda,cpu")
    assert platform_name() == "asked about cuda,cpu"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "it said nothing"),
        (["a", "b "], "b"),
        (["Unknown flag in XLA_FLAGS: --x", "core dumped"], "Unknown flag in XLA_FL"),
        (["RuntimeError: no cuda", "For simplicity"], "RuntimeError: no cuda"),
    ],
)
def test_the_line_of_a_dying_process_that_says_why(lines, reason):
    assert platform._reason(lines).startswith(reason)
