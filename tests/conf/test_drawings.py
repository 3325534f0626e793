"""Drawings of ideas: their parts can be lit, and their words stay inside."""

import itertools
import xml.etree.ElementTree as ET

import pytest


def test_a_part_is_lit_and_said_to_be(drawings):
    plain = drawings.svg(drawings.DRAWINGS["call"])
    lit = drawings.svg(drawings.DRAWINGS["call"], frozenset({"trace"}))
    assert (plain.count("box lit"), lit.count("box lit")) == (0, 1)
    assert "Marked here" not in plain
    assert "Marked here: trace." in lit


def test_a_part_that_is_not_there_is_an_error(drawings):
    with pytest.raises(ValueError, match=r"no box .'hit'.; there are .'cache'"):
        drawings.svg(drawings.DRAWINGS["call"], frozenset({"hit"}))


def test_every_drawing_is_xml_whose_texts_stay_inside_boxes_side_by_side(drawings):
    for name, drawing in drawings.DRAWINGS.items():
        ET.fromstring(drawings.svg(drawing, frozenset(b.name for b in drawing.boxes)))
        assert len({box.name for box in drawing.boxes}) == len(drawing.boxes), name
        # Names share one line after `:lit:`, so spaces separate them.
        assert not [box.name for box in drawing.boxes if " " in box.name], name
        for box in drawing.boxes:
            (x, y), each = box.at, 9.4 if box.code else 8
            assert 2 <= x <= drawings.WIDTH - 2 - box.width, (name, box)
            assert 2 <= y <= drawing.height - 2 - box.height, (name, box)
            widths = [each * len(box.title), *(6.8 * len(line) for line in box.lines)]
            assert max(widths) < box.width - 8, (name, box)
        for one, other in itertools.permutations(drawing.boxes, 2):
            right, below = one.at[0] + one.width, one.at[1] + one.height
            apart = other.at[0] >= right or other.at[1] >= below
            before = one.at[0] >= other.at[0] + other.width
            above = one.at[1] >= other.at[1] + other.height
            assert apart or before or above, (name, one.name, other.name)
