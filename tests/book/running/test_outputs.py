"""Outputs are collected in their order, up to a limit."""

import pytest

from executed_book.running.outputs import OutputLimit, Outputs, text_stream


def test_text_of_one_stream_is_joined_until_something_comes_between():
    outputs = Outputs(100)
    for name, text in [("stdout", "a"), ("stdout", "b"), ("stderr", "c")]:
        outputs.stream(name, text)
    outputs.rich("display_data", {"text/plain": "d"}, {}, 0)
    outputs.stream("stderr", "e")
    outputs.stream("stderr", "")
    items = outputs.items()
    assert [(i.get("name"), i.get("text")) for i in items] == [
        ("stdout", "ab"),
        ("stderr", "c"),
        (None, None),
        ("stderr", "e"),
    ]
    assert outputs.items() == items, "looking changes nothing"
    outputs.stream("stderr", "f")
    assert outputs.items()[-1]["text"] == "ef"


def test_a_value_has_its_number_and_a_display_none():
    outputs = Outputs(100)
    outputs.rich("execute_result", {"text/plain": "3"}, {"a": 1}, 7)
    outputs.rich("display_data", {"text/plain": "4"}, {}, 7)
    value = {"output_type": "execute_result", "data": {"text/plain": "3"}}
    assert outputs.items() == [
        {**value, "metadata": {"a": 1}, "execution_count": 7},
        {"output_type": "display_data", "data": {"text/plain": "4"}, "metadata": {}},
    ]


def test_bytes_are_kept_as_notebooks_have_them():
    outputs = Outputs(100)
    outputs.rich("display_data", {"image/png": b"\x89PNG"}, {}, 0)
    with pytest.raises(UnicodeEncodeError):
        outputs.rich("execute_result", {"text/plain": "\ud800"}, {}, 1)
    [item] = outputs.items()
    assert item["data"] == {"image/png": "iVBORw=="}


def test_a_limit_is_one_for_all_text_of_a_cell():
    outputs = Outputs(5)
    outputs.stream("stdout", "abc")
    outputs.rich("display_data", {"text/plain": "de"}, {}, 0)
    assert not outputs.over
    with pytest.raises(OutputLimit):
        outputs.stream("stderr", "f")
    assert outputs.over == "printed over 5 characters"
    with pytest.raises(OutputLimit):
        outputs.stream("stdout", "g")
    outputs.clear()
    assert (outputs.over, outputs.items()) == ("", [])


def test_a_picture_is_no_text():
    outputs = Outputs(5)
    figure = {"image/svg+xml": "<svg>" * 9, "text/plain": "F"}
    outputs.rich("display_data", figure, {}, 0)
    assert outputs.size == 1


def test_a_stream_is_as_pythons_own():
    outputs = Outputs(100)
    stdout = text_stream("stdout", outputs, 1)
    stderr = text_stream("stderr", outputs, 2)
    print("é", end="\r\n", file=stdout)
    with pytest.raises(UnicodeEncodeError):
        print("\ud800", file=stdout)
    print("\ud800", file=stderr)
    assert [item["text"] for item in outputs.items()] == ["é\r\n", "\\ud800\n"]
    assert (stdout.fileno(), stderr.fileno(), stdout.writable()) == (1, 2, True)
