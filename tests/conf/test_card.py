"""The card for links: its size, and that its words stay on it."""

from types import SimpleNamespace

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

LINES = ("JAX for people who know NumPy:", "what will happen, what came out, and why.")


def test_words_lie_on_the_card_and_in_their_frames(card):
    figure = card.card("Just After Execution", LINES, "0.12.0.1")
    renderer = FigureCanvasAgg(figure).get_renderer()
    [axes] = figure.axes
    frames = [patch.get_window_extent(renderer) for patch in axes.patches[1:]]
    inside = 0
    for text in axes.texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 40, text
        assert box.x1 <= card.WIDTH - 40, text
        held = [f for f in frames if f.x0 < box.x0 < f.x1 and f.y0 < box.y0 < f.y1]
        assert all(box.x1 <= frame.x1 - 8 for frame in held), text
        inside += len(held)
    assert inside == 5


@pytest.mark.parametrize("address", ["https://book.example", ""])
def test_it_is_written_where_the_address_is_known(card, tmp_path, address):
    (tmp_path / "_static").mkdir()
    config = SimpleNamespace(card_lines=LINES, html_baseurl=address, project="A Book")
    config.html_context = {"jax_version": "1"}
    builder = SimpleNamespace(name="html")
    card.write(SimpleNamespace(outdir=tmp_path, config=config, builder=builder), None)
    path = tmp_path / "_static" / "card.png"
    assert path.exists() == bool(address)
    if address:
        with Image.open(path) as image:
            assert image.size == (1200, 630)
