"""Parts of the book: a drawing for each, and the time to read its chapters."""

import xml.etree.ElementTree as ET
from pathlib import Path

from docutils import nodes
from docutils.utils import new_document

DOCS = Path(__file__).parents[2] / "docs"


def test_each_part_that_one_reads_has_a_drawing(parts):
    folders = {path.parent.name for path in DOCS.glob("*/index.md")}
    assert folders - {"errors"} == set(parts.DRAWINGS)
    for name in parts.DRAWINGS:
        ET.fromstring(parts.drawing(name).astext())


def test_words_and_seen_cells_take_time(parts):
    document = new_document("a")
    document += nodes.paragraph("", "word " * 400)
    document += nodes.container(nb_element="cell_code")
    document += nodes.container(nb_element="cell_code", classes=["tag_check"])
    assert parts.minutes_of(document) == 2 + parts.OF_A_CELL
