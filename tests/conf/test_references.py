"""Names in code and in text lead to their official reference, without a network."""

import re
import zlib
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

JAX = "https://docs.jax.dev/en/latest/_autosummary/"


def page(*blocks: str, text: str = "") -> str:
    code = [highlight(block, PythonLexer(), HtmlFormatter()) for block in blocks]
    return text + "".join(
        f'<div class="highlight-ipython3 notranslate">{each}</div>' for each in code
    )


def literal(name: str) -> str:
    shown = f'<span class="pre">{name}</span>'
    return f'<code class="docutils literal notranslate">{shown}</code>'


def links(body: str) -> list[tuple[str, str]]:
    found = re.findall(r'<a class="reference external" href="([^"]*)">(.*?)</a>', body)
    return [(re.sub("<.*?>", "", text), url.rpartition("#")[2]) for url, text in found]


def test_a_name_is_what_the_imports_make_it(references):
    imports = "import jax.numpy as n\nfrom jax import vmap as batched\n"
    uses = "batched(n.sin)(n.linalg.norm(x).sum())\n"
    body = references.linked(page(imports, uses))
    assert links(body) == [
        ("jax.numpy", "module-jax.numpy"),
        ("vmap", "jax.vmap"),
        ("batched", "jax.vmap"),
        ("n.sin", "jax.numpy.sin"),
        ("n.linalg.norm", "jax.numpy.linalg.norm"),
    ]
    assert f'href="{JAX}jax.numpy.sin.html#jax.numpy.sin"' in body


def test_code_keeps_its_text_and_its_colors(references):
    code = "import jax\ny = 'é', jax.grad(f)(1)  # ü\nz = jax . jit(\n  jax.jit)\n"
    before = page(code)
    after = references.linked(before)
    assert references.text_of(after) == references.text_of(before)
    assert re.sub(r"</?a\b[^>]*>", "", after) == before
    assert [name for _, name in links(after)] == ["jax.grad", "jax.jit"]


def test_what_is_given_to_something_else_leads_nowhere(references):
    code = "from jax import vmap, grad\ndef f(grad):\n    return grad\nvmap = 3\nvmap\n"
    found = links(references.linked(page(code)))
    assert [text for text, _ in found] == ["vmap", "grad"]


def test_no_name_no_link(references):
    code = "import jax.tree\njax.no_such_name(1)\njax.tree\njax\nx.sin()\n"
    assert links(references.linked(page(code))) == [("jax.tree", "module-jax.tree")]
    assert links(references.linked(page("%timeit jax.jit(f)\n"))) == []


def test_names_in_text(references):
    text = f"<h2>{literal('jnp.cos')}</h2><a href='x'>{literal('jnp.tan')}</a>"
    for name in ("jnp.sin", "jax.jit(f)", "no.sin", "scan", "jax"):
        text += f"<p>{literal(name)}</p>"
    names = ["jax.numpy.sin", "jax.jit"]
    assert [name for _, name in links(references.linked(page(text=text)))] == names
    known = references.linked(page("from jax.lax import scan\n", text=text))
    assert [name for _, name in links(known)] == [*names, *2 * ["jax.lax.scan"]]


def test_every_list_can_be_read(references):
    addresses = {target.address for target in references.inventory().values()}
    for site in references.SITES.values():
        assert any(address.startswith(site) for address in addresses)


ROWS = b"jax.jit py:function 1 a/jax.jit.html#$ -\njax py:module 0 jax.html#m -\n"
HEAD = b"# Sphinx inventory version 2\n# Project: JAX\n# Version: 9\n# zlib\n"


def test_a_published_inventory_becomes_a_list(
    references, monkeypatch, tmp_path: Path, capsys
):
    published = tmp_path / "objects.inv"
    published.write_bytes(HEAD + zlib.compress(ROWS))
    monkeypatch.setattr(references, "_LISTS", tmp_path)
    assert references.fetch({"jax": str(published)}) == []
    assert (tmp_path / "jax.txt").read_text().splitlines() == [
        "# Sphinx inventory version 1",
        f"# Project: JAX, as {published} lists it",
        "# Version: 9",
        "jax mod jax.html",
        "jax.jit function a/jax.jit.html",
    ]
    assert capsys.readouterr().out == f"jax: 2 names from {published}\n"


def test_a_list_that_cannot_be_had_leaves_the_old_one(
    references, monkeypatch, tmp_path: Path
):
    (tmp_path / "jax.txt").write_text("old")
    (tmp_path / "damaged.inv").write_bytes(b"<html>")
    monkeypatch.setattr(references, "_LISTS", tmp_path)
    for name in ("missing.inv", "damaged.inv"):
        [said] = references.fetch({"jax": str(tmp_path / name)})
        assert said.startswith(f"jax: {tmp_path / name}: ")
    assert (tmp_path / "jax.txt").read_text() == "old"


def test_a_book_is_built_with_them(build):
    code = "```python\nimport jax.numpy\njax.jit(f)\n```\n"
    out = build(f"# Page\n\n`jnp.sin`\n\n{code}", "references")
    names = {"jax.numpy.sin", "module-jax.numpy", "jax.jit"}
    written = (out / "index.html").read_text("utf-8")
    assert names <= {name for _, name in links(written)}
