"""The lens as a document: escaped, deterministic, self-contained."""

import re
from html.parser import HTMLParser
from pathlib import Path

import jax
import jax.numpy as jnp

from justafter import lens
from justafter._lens import _show
from justafter._lens._jaxpr import clean

V = jax.ShapeDtypeStruct((3,), "float32")
VOID = {"meta", "br", "link"}


def f(x):
    return jnp.tanh(x) * 2 + 1


class Tree(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)


def steady(html: str) -> str:
    return re.sub(r'<span class="measured">[^<]*</span>', "<span></span>", html)


def test_two_runs_differ_in_the_measured_time_alone():
    first, second = lens(f, V), lens(f, V)
    assert steady(first._repr_html_()) == steady(second._repr_html_())
    assert first._repr_html_().count('class="measured"') == 1


def test_well_formed_and_self_contained(tmp_path):
    path = tmp_path / "x.html"
    lens(f, V).save(path)
    text = path.read_text(encoding="utf-8")
    tree = Tree(text)
    assert tree.tags.count("main") == 1
    assert not [a for a in tree.attributes if a[1] in ("src", "href", "srcset")]
    assert not [word for word in ("http", "@import", "url(") if word in text]


def test_no_folders_anywhere():
    view = lens(f, V)
    for text in (view._repr_html_(), str(view), repr(view), repr(view.equations)):
        assert str(Path(__file__).parent) not in text
        assert "/home/" not in text


def test_source_and_names_are_data():
    name = '<img src=x onerror="boom()">'

    def evil(x):
        words = "</code></pre><script>boom()</script>"
        with jax.named_scope("<b>&scope"):
            return {words: jnp.tanh(x)}

    evil.__name__ = name
    html = lens(evil, V)._repr_html_()
    tree = Tree(html)
    assert tree.tags.count("script") == 1
    assert "img" not in tree.tags
    assert name in "".join(tree.words)
    assert "<script>boom()</script>" in "".join(tree.words)


def test_a_span_beyond_its_parent_is_cut():
    html = _show.nested("abcdef", [(0, 3, (0,)), (1, 6, (1,))])
    assert Tree(f"<p>{html}</p>").words == ["a", "bc", "def"]


def test_addresses_and_folders_are_cleaned():
    assert clean("<function f at 0x7f12ab>") == "<function f>"
    assert clean("kernel at /home/me/k.py:7") == "kernel at k.py:7"
    assert clean("jit(f)/jvp()/mul") == "jit(f)/jvp()/mul"
    assert clean("((0, np.int64(3), 0),)") == "((0, 3, 0),)"


def test_plain_text_is_aligned():
    lines = str(lens(f, V)).splitlines()
    rows = [line for line in lines if re.match(r" +\d+ \w+:f32", line)]
    assert len(rows) == 3
    assert len({row.index(" k0") for row in rows}) == 1
    assert all(line == line.rstrip() for line in lines)
