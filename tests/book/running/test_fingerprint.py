"""What a run depends on, and that nothing else is part of it."""

import importlib.metadata

import pytest

from executed_book.files import digest, file_digest
from executed_book.running import fingerprint
from executed_book.running.fingerprint import dependencies, holds
from executed_book.running.surroundings import Uses


def key() -> str:
    return fingerprint.environment_fingerprint("cpu")


def test_what_workers_have_anyway_changes_no_key(monkeypatch):
    """The shell that builds and the process that tests share what was executed."""
    for name in ("JAX_PLATFORMS", "MPLBACKEND", "TF_CPP_MIN_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    plain = key()
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")  # as JAX does
    assert key() == plain


@pytest.mark.parametrize(
    ("name", "is_other"),
    [
        *(("XLA_FLAGS", True), ("LC_ALL", True), ("TZ", True), ("EDITOR", False)),
        *(("OMP_NUM_THREADS", True), ("JAX_PLATFORMS", True), ("JAX_ENABLE_X64", True)),
    ],
)
def test_what_steers_jax_or_the_text_of_numbers_changes_the_key(
    monkeypatch, name, is_other
):
    monkeypatch.delenv(name, raising=False)
    plain = key()
    monkeypatch.setenv(name, "other")
    assert (key() != plain) == is_other


def test_a_device_is_another_key_and_the_order_of_things_none():
    assert fingerprint.environment_fingerprint("gpu NVIDIA H200 1") != key()
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_a_run_depends_on_distributions_and_files_of_the_project(tmp_path):
    for name in ("data.txt", "docs/helper.py", "_build/cache.json", ".git/HEAD"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    opened = [*map(str, tmp_path.rglob("*.*")), str(tmp_path / ".git" / "HEAD")]
    opened.append(str(tmp_path / "gone.txt"))
    compiled = tmp_path / "docs" / "__pycache__" / "helper.cpython-313.pyc"
    uses = Uses({*opened, str(compiled)}, {str(tmp_path / "docs")}, {"HOME": "secret"})
    found = dependencies(["numpy", "json"], uses, tmp_path)
    assert found["distributions"] == {"numpy": importlib.metadata.version("numpy")}
    assert sorted(found["files"]) == ["data.txt", "docs/helper.py", "gone.txt"]
    assert found["files"]["gone.txt"] is None
    assert found["files"]["data.txt"] == file_digest(tmp_path / "data.txt")
    assert holds(found, tmp_path)
    assert "secret" not in str(found)
    (tmp_path / "data.txt").write_text("y")
    assert not holds(found, tmp_path)


def test_modules_belong_to_the_distributions_that_python_finds():
    slowly = importlib.metadata.packages_distributions()
    owners = fingerprint._owners()
    assert {name: owners.get(name) for name in slowly} == {
        name: set(distributions) for name, distributions in slowly.items()
    }


def test_what_is_gone_holds_no_more(tmp_path):
    assert file_digest(tmp_path / "gone") is None
    assert not holds({"distributions": {"no-such-thing": "1.0"}}, tmp_path)
    assert not holds({"files": {"gone": "abc"}}, tmp_path)
