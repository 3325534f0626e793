"""What is done to a page's document once it has been read."""

from types import SimpleNamespace
from typing import Any

import pytest
from docutils import nodes
from docutils.utils import new_document

from executed_book.showing import transforms
from executed_book.showing.transforms import program_box

LIGHT_DARK = ("light", "dark")


def part(name: str, *children: nodes.Node, **fields: Any) -> nodes.container:
    made = nodes.container("", *children, nb_element=name)
    made["classes"] = fields.pop("classes", [])
    made["cell_metadata"] = fields.pop("metadata", {})
    return made


def cell(*outputs: nodes.Node, **fields: Any) -> nodes.container:
    source = part("cell_code_source", nodes.literal_block("x", "x"))
    output = [part("cell_code_output", *outputs)] if outputs else []
    return part("cell_code", source, *output, **fields)


def text(content: str) -> nodes.literal_block:
    return nodes.literal_block(content, content)


def applied(name: str, *cells: nodes.Node, **around: Any) -> nodes.document:
    document = new_document("page.md")
    config = SimpleNamespace(executed_book_figures=around.get("figures", "themed"))
    builder = SimpleNamespace(name=around.get("builder", "html"), format="html")
    document.settings.env = SimpleNamespace(
        config=config, srcdir=around.get("source", ""), _builder_cls=builder
    )
    document += list(cells)
    getattr(transforms, name)(document).apply()
    return document


def output_of(document: nodes.document, number: int = 0) -> nodes.container:
    return transforms._parts(document, "cell_code_output")[number]


@pytest.mark.parametrize(
    ("classes", "output", "is_found"),
    [
        ([], text("3"), True),
        (["tag_measured"], text("3"), False),
        (["tag_device"], text("3"), False),
        (["tag_check"], text("3"), True),
        ([], nodes.raw("", "<b>3</b>", format="html"), False),
        ([], text("a " + 9999 * "y"), True),
        ([], text("a " + 10000 * "y"), False),
    ],
    ids=range(7),
)
def test_what_varies_or_has_no_end_is_not_searched(classes, output, is_found):
    document = applied("MarkedOutputs", cell(output, classes=classes))
    assert ("no-search" not in output_of(document)["classes"]) is is_found


def test_a_figure_has_a_twin_and_a_message_no_color(tmp_path):
    (tmp_path / "a.svg").write_text("<svg/>")
    document = applied("DarkTwins", cell(nodes.image(uri="/a.svg")), source=tmp_path)
    images = [(i["uri"], *i["classes"]) for i in document.findall(nodes.image)]
    assert images == [("/a.svg", "only-light"), ("/a-dark.svg", "only-dark")]
    message = nodes.literal_block("1 / 0", classes=["traceback"], language="python")
    applied("MarkedOutputs", cell(message))
    assert message["language"] == "none"


@pytest.mark.parametrize(("said", "lexer"), [("3", "none"), ("\x1b[1m3", "myst-ansi")])
def test_colors_on_stderr_are_shown_as_colors(said, lexer):
    message = nodes.literal_block("", said, classes=["output", "stderr"])
    applied("MarkedOutputs", cell(message))
    assert message["language"] == lexer


@pytest.mark.parametrize(("figures", "uri"), [("svg", "/a.svg"), ("themed", "/a.png")])
def test_other_figures_have_none(tmp_path, figures, uri):
    image = nodes.image(uri=uri)
    around = {"source": str(tmp_path), "figures": figures}
    document = applied("DarkTwins", cell(image), **around)
    assert list(document.findall(nodes.image)) == [image]


@pytest.mark.parametrize(("builder", "left"), [("html", 2), ("epub", 1)])
def test_an_epub_has_the_light_figure_alone(builder, left):
    twins = [nodes.image(uri=f"/{n}.svg", classes=[f"only-{n}"]) for n in LIGHT_DARK]
    document = applied("OneFigure", cell(*twins), builder=builder)
    assert list(document.findall(nodes.image)) == twins[:left]


def test_an_image_in_the_text_has_none(tmp_path):
    image = nodes.image(uri="/a.svg")
    assert len(list(applied("DarkTwins", image).findall(nodes.image))) == 1


def test_a_program_stands_right_below_the_code():
    made = cell(text("3"), metadata={"program": "x = '<1>'\nx\n"})
    applied("ProgramBoxes", made)
    source, box, output = made.children
    kinds = [part.get("nb_element") for part in (source, output)]
    assert kinds == ["cell_code_source", "cell_code_output"]
    assert box["classes"] == ["program-holder", "no-search"]
    assert "x = &#x27;&lt;1&gt;&#x27;\nx\n</pre>" in box.children[0].astext()
    assert program_box("a\nb\n").astext().count("2 lines") == 1


def test_why_there_is_no_program_is_said():
    made = cell(metadata={"program": None, "no-program": "It is the shell's."})
    applied("ProgramBoxes", made)
    assert made.children[1].astext() == "No program: It is the shell's."
    quiet = cell(metadata={"program": None})
    applied("ProgramBoxes", quiet)
    assert len(quiet.children) == 1


RECORD = {"label": "NVIDIA H200", "version": "", "stamp": "Recorded on it"}


def recorded(*records: dict[str, str], own: tuple[nodes.Node, ...] = (text("1"),)):
    home = cell(*own, metadata={"device": "CPU"})
    return [home, *(cell(text("2"), metadata={"record": r}) for r in records)]


def tabs(document: nodes.document) -> list[tuple[str, bool, list[str]]]:
    """Each tab: what it is called, whether it is open, what it holds."""
    return [
        (label.astext(), item["selected"], [part.astext() for part in held.children])
        for item in document.findall(nodes.container)
        if _is(item, "tab-item")
        for label, held in [item.children]
    ]


def _is(node: nodes.container, kind: str) -> bool:
    return node.get("design_component") == kind


def test_several_records_share_one_set_and_say_what_else_is_another():
    other = {"label": "TPU v5", "version": "JAX 0.11", "stamp": "There"}
    document = applied("RecordTabs", *recorded(RECORD, other))
    names = ["CPU", "NVIDIA H200", "TPU v5, JAX 0.11"]
    assert [tab[0] for tab in tabs(document)] == names
    sets = [n for n in document.findall(nodes.container) if _is(n, "tab-set")]
    assert len(sets) == 1
    assert len(transforms.cells_of(document)) == 1, "the records' own cells are gone"


def test_a_cell_that_gave_nothing_itself_has_an_empty_tab():
    document = applied("RecordTabs", *recorded(RECORD, own=()))
    assert tabs(document)[0] == ("CPU", True, [])
    assert tabs(document)[1][2] == ["2", "Recorded on it"]
