"""What of outputs is pinned, printed and shown."""

from executed_book.checking.text import pinned_text, shown_texts
from executed_book.model import ValueResult

from ..made import figure, gave, printed, shown

ERROR = {
    "output_type": "error",
    "ename": "TypeError",
    "evalue": "m\n",
    "traceback": ["Traceback", "  Cell 3, line 1"],
}


def test_pinned_is_everything_in_its_order():
    outputs = [
        printed("a\n"),
        printed("careful\n", "stderr"),
        figure(),
        shown("3", html="<b>3</b>"),
        ERROR,
    ]
    assert pinned_text(outputs) == "a\ncareful\n[image/svg+xml]\n3\nTypeError: m"
    assert pinned_text([]) == ""


def test_pins_do_not_number_cells():
    assert pinned_text([printed("at <cell 3>:2 in <cells 3>")]) == (
        "at <cell>:2 in <cells 3>"
    )


def test_shown_is_every_format_of_text_and_the_values_below():
    result = gave(
        printed("a\n"),
        shown("3", html="<b>3</b>"),
        figure("<svg>x</svg>"),
        ERROR,
        values=(ValueResult("7"),),
    )
    assert list(shown_texts(result)) == [
        "a\n",
        "3",
        "<b>3</b>",
        "<Figure>",
        "Traceback\n  Cell 3, line 1",
        "7",
    ]
