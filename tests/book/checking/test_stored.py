"""What cells gave, as files: written, read again, and named where they are broken."""

import pytest

from executed_book.checking.stored import (
    Part,
    StoredCell,
    StoredPage,
    is_accepted,
    outputs_of,
    outputs_text,
    read_outputs,
    recorded_page,
    write_page,
)
from executed_book.errors import PageError
from executed_book.model import Cell

from ..made import GPU, chapter, executed, figure, gave, printed, shown

WHOLE = [
    *(printed("a\nb\n"), printed("c", "stderr"), shown("1", html="<b>\n1</b>")),
    *(figure("<svg>\n1</svg>"), figure("<svg>2</svg>"), printed("end")),
    {"output_type": "error", "ename": "E", "evalue": "at <cell 3>", "traceback": ["x"]},
    {
        "output_type": "display_data",
        "data": {"image/png": "AAEC", "text/plain": "<Figure>"},
        "metadata": {},
    },
]


def recorded() -> StoredPage:
    """A page of a GPU: one cell is stored whole, one is not, and one failed."""
    varies = Cell(2, "y", 20, tags=frozenset({"measured"}))
    run = executed(
        chapter("x", varies, "z"),
        *(gave(*WHOLE), gave(printed("0.1 s")), gave(shown("1", html="<b>1</b>"))),
        provenance=GPU,
    )
    return recorded_page(run, lambda n: set(range(1, n)), failed={3}, shown={1})


def test_a_record_is_the_same_after_its_files(tmp_path):
    path = tmp_path / "one.txt"
    write_page(recorded(), path)
    assert read_outputs(path) == recorded()
    assert not is_accepted(path)
    formats = ("2.html", "3.svg", "4.svg", "6.png")
    names = {"one.txt", *(f"one-1-{name}" for name in formats)}
    assert {p.name for p in tmp_path.iterdir()} == names


def test_a_record_is_text_for_a_review():
    assert outputs_text(recorded(), "one").partition("\n\n")[2] == (
        ">>> x\n| a\n| b\n| c\n: 1\n@ one-1-2.html\n"
        ": [image/svg+xml]\n@ one-1-3.svg\n: [image/svg+xml]\n@ one-1-4.svg\n"
        "| end\n| E: at <cell>\n: [image/png]\n@ one-1-6.png\n\n"
        ">>> y\n# needs 1\n~\n\n"
        ">>> z\n# needs 1 2\n!\n| 1\n\n# end\n"
    )


def test_what_is_shown_of_a_record():
    whole, varying, _ = recorded().cells
    text, html, first, *_ = outputs_of(whole)
    assert text == printed("a\nb\nc\n")
    assert html["data"] == {"text/html": "<b>\n1</b>", "text/plain": "1"}
    assert first["data"]["image/svg+xml"] == "<svg>\n1</svg>"
    assert outputs_of(varying) == []


def test_new_records_leave_the_figures_of_a_chapter_whose_name_begins_alike(tmp_path):
    cell = StoredCell("x", (Part("[figure]", "image/svg+xml", "<svg/>"),))
    for name in ("timing", "timing-2"):
        write_page(StoredPage(GPU, (cell,)), tmp_path / f"{name}.txt")
    write_page(StoredPage(GPU, ()), tmp_path / "timing.txt")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["timing-2-1-1.svg", "timing-2.txt", "timing.txt"]


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("# end\n", "", 1, "its last line is not '# end': it has been cut"),
        ("# end\n", "# en", 1, "it has been cut"),
        ("# JAX 0.12.0", "# Notes", 1, "it begins with '# Notes"),
        ("# device_count 1\n", "", 1, "invalid literal for int()"),
        ("# jaxlib 0.12.0\n", "", 1, "missing 1 required positional argument"),
        ("# needs 1\n", "# needs x\n", 24, "invalid literal for int()"),
        ("# needs 1\n", "<<<<<<< ours\n", 24, "it holds the line '<<<<<<< ours'"),
        ("@ one-1-3.svg", "@ gone.svg", 9, "No such file"),
    ],
)
def test_a_file_that_is_broken_is_named_with_the_line(tmp_path, old, new, line, reason):
    path = tmp_path / "one.txt"
    write_page(recorded(), path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(PageError, match="not a file of outputs: ") as caught:
        read_outputs(path)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert reason in caught.value.message


@pytest.mark.parametrize("content", [b"# JAX 1, cpu\n\n>>> s\xe9\n", b"", b"# Notes\n"])
def test_what_is_no_file_of_outputs(tmp_path, content):
    path = tmp_path / "one.txt"
    assert not is_accepted(path)
    path.write_bytes(content)
    assert not is_accepted(path) or content.startswith(b"# JAX")
    with pytest.raises(PageError, match="not a file of outputs"):
        read_outputs(path)
