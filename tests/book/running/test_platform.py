"""Which platform chapters run on, and what is said where JAX does not start."""

import pytest

from executed_book.errors import BookError
from executed_book.running import platform
from executed_book.running.platform import platform_name


def test_a_platform_is_asked_for_only_where_the_environment_does_not_say(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr(platform, "_ask_jax", lambda chosen: f"asked about {chosen}")
    assert platform_name() == "cpu"
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    assert platform_name() == "asked about cpu"
    with monkeypatch.context() as without_jax:
        without_jax.setattr(platform, "find_spec", lambda name: None)
        assert platform_name() == "cpu"
    monkeypatch.setenv("JAX_PLATFORMS", "cuda,cpu")
    assert platform_name() == "asked about cuda,cpu"


@pytest.mark.parametrize(
    ("jax", "why"),
    [
        ("def devices(): assert False", "no such platform is installed here"),
        (
            "devices = list\ndefault_backend = lambda: 'cpu'",
            "Error: 'cuda' is not here",
        ),
    ],
)
def test_a_platform_that_is_not_there_is_said(tmp_path, monkeypatch, jax, why):
    (tmp_path / "jax.py").write_text(jax)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("JAX_PLATFORMS", "cuda,cpu")
    with pytest.raises(BookError, match=f"on the platform 'cuda,cpu': {why}"):
        platform_name()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "it printed no message"),
        (["a", "b "], "b"),
        (["Unknown flag in XLA_FLAGS: --x", "core dumped"], "Unknown flag in XLA_FL"),
        (["RuntimeError: no cuda", "For simplicity"], "RuntimeError: no cuda"),
    ],
)
def test_the_line_of_a_dying_process_that_says_why(lines, reason):
    assert platform._reason(lines).startswith(reason)
