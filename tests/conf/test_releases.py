"""Sites of several releases beside one another; a map, a feed and one address."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest


def site(root: Path, version: str, *pages: str) -> Path:
    for page in ("index.html", *pages):
        path = root / version / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'<span class="jax-version">JAX {version}</span>'
            f'<article class="bd-article"><h1>{page}</h1></article>'
        )
    return root / version


def leads(path: Path) -> dict[str, Path]:
    found = re.findall(r'href="([^"]*)"[^>]*>JAX ([\d.]+)</a>', path.read_text())
    return {version: (path.parent / link).resolve() for link, version in found}


def test_each_page_leads_to_itself_in_other_releases(releases, tmp_path: Path):
    out = tmp_path / "out"
    new = site(tmp_path, "0.12.1", "part/a.html", "part/new.html")
    old = site(tmp_path, "0.11.2", "part/a.html", "gone.html")
    releases.assemble(out, [new, old])
    older = out / "jax-0.11.2"
    assert "an older release" not in (out / "part/a.html").read_text()
    text = (older / "part/a.html").read_text()
    assert "This is about JAX 0.11.2, an older release" in text
    assert 'href="../../part/a.html">the page for JAX 0.12.1</a>' in text
    both = {"0.12.1": out / "part/a.html", "0.11.2": older / "part/a.html"}
    assert leads(out / "part/a.html") == both
    assert leads(older / "part/a.html") == both
    assert leads(out / "part/new.html")["0.11.2"] == older / "index.html"
    assert leads(older / "gone.html")["0.12.1"] == out / "index.html"
    for path in out.rglob("*.html"):
        assert all(target.is_file() for target in leads(path).values())


def test_one_site_stays_as_it_is(releases, tmp_path: Path):
    new = site(tmp_path, "0.12.1", "a.html")
    releases.assemble(tmp_path / "out", [new])
    assert (tmp_path / "out" / "a.html").read_text() == (new / "a.html").read_text()


def test_the_newest_release_as_it_was_tagged_is_left_out(releases, tmp_path: Path):
    new, old = site(tmp_path, "0.12.1", "a.html"), site(tmp_path, "0.11.2", "a.html")
    tagged = site(tmp_path / "kept", "0.12.1", "gone.html")
    releases.assemble(tmp_path / "out", [new, tagged, old])
    assert leads(tmp_path / "out" / "a.html").keys() == {"0.12.1", "0.11.2"}
    assert not (tmp_path / "out" / "gone.html").exists()


def test_what_is_no_site_and_what_is_twice_there_is_refused(releases, tmp_path: Path):
    new, old = site(tmp_path, "0.12.1"), site(tmp_path, "0.11.2")
    with pytest.raises(ValueError, match="several sites are of one release"):
        releases.assemble(tmp_path / "out", [new, old, old])
    with pytest.raises(ValueError, match=r"nothing: no site of the book; build it"):
        releases.assemble(tmp_path / "out", [tmp_path / "nothing"])


CHANGES = """# Changes
## 2
### The book
- A *part*
  that is <new>.
- Another.
### The engine
- No reader's.
"""


@pytest.mark.parametrize("address", ["", "https://book.example/"])
def test_map_feed_and_address_where_the_book_has_one(build, address, tmp_path: Path):
    (tmp_path / "changes.md").write_text(CHANGES)
    options = "pages_changes = 'changes.md'\nexclude_patterns = ['changes.md']\n"
    options += f"html_baseurl = {address!r}"
    out = build("# Page\n\nWhat it is about.\n", "pages", options=options)
    made = [(out / name).exists() for name in ("sitemap.xml", "feed.xml")]
    assert made == [bool(address)] * 2
    page = (out / "index.html").read_text()
    if not address:
        assert "canonical" not in page
        return
    assert f'<link rel="canonical" href="{address}index.html" />' in page
    rows = ET.parse(out / "sitemap.xml").getroot()
    assert [row[0].text for row in rows] == [f"{address}index.html"]
    channel = ET.parse(out / "feed.xml").getroot()[0]
    told = [item.findtext("description") for item in channel.iter("item")]
    assert told == ["A part that is <new>.", "Another."]
    assert len({item.findtext("guid") for item in channel.iter("item")}) == 2
