"""The whole book as one file: well-formed pages of an EPUB, and a site as one page."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest


@pytest.fixture
def built(build):
    def built(builder: str, page: str, options: str = "") -> Path:
        options += "\narchive_name = epub_basename = 'a-book'\nversion = '1'"
        return build(
            *(page, "archive", "editions", "pages"), options=options, builder=builder
        )

    return built


DISPLAYED = (
    "<div class=output><details open><summary>More<p>a &nbsp; b<br>"
    "<svg viewBox='0 0 1 1'><path d=M0></svg><script>1 < 2</script></details>"
)


def test_what_a_cell_displays_becomes_well_formed(editions):
    body = editions.well_formed(DISPLAYED)
    root = ET.fromstring(f"<body>{body}</body>")
    assert root.find(".//{http://www.w3.org/2000/svg}path") is not None
    assert "".join(root.itertext()) == "Morea \xa0 b"


def test_a_summary_says_one_thing_and_drawings_keep_their_names(editions):
    folded = (
        '<details><summary aria-label="Toggle"><p class="collapsed">Show it</p>'
        '<p class="expanded">Hide it</p></summary><p>x</p></details>'
    )
    root = ET.fromstring(f"<body>{editions.well_formed(folded)}</body>")
    assert [*map(len, root.iter("summary"))] == [0]
    assert "".join(root.itertext()) == "Show itx"
    drawn = editions.well_formed('<svg viewBox="0 0 1 1"><path d="M0"/></svg>')
    assert ' viewBox="0 0 1 1"' in drawn


def test_tabs_follow_one_another_and_what_can_only_be_clicked_is_left_out(editions):
    tabs = (
        '<div class="sd-tab-set"><input id="a" type="radio"/><label for="a"'
        ' class="sd-tab-label" data-sync-id="cpu">CPU</label><div>1</div></div>'
        '<p>See it. <span class="on-screen">Tap it.</span></p>'
        '<div class="ja-lens"><div class="ja-caption">jaxpr</div>'
        '<div class="ja-q"><b>0</b> sin</div><p class="ja-status">Point at</p></div>'
    )
    root = ET.fromstring(f"<body>{editions.well_formed(tabs)}</body>")
    assert [*root.iter("label")] == []
    [label] = root.findall(".//p[@class='sd-tab-label']")
    assert (label.text, label.keys()) == ("CPU", ["class"])
    assert "".join(root.itertext()) == "CPU1See it. jaxpr:\n  0 sin"


def test_a_drawing_needs_no_network(editions):
    drawing = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN"\n'
        ' "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n'
        '<svg><path id="a"/><path d="M0"/><path id="b" d="M1"/></svg>'
    )
    assert editions.settle_drawing(drawing) == (
        '<?xml version="1.0"?>\n'
        '<svg><path d="" id="a"/><path d="M0"/><path id="b" d="M1"/></svg>'
    )


def test_an_epub_lists_what_it_holds_and_its_pages_are_xml(built):
    made = built("epub", f"# Page\n\nOne {DISPLAYED}\n")
    with zipfile.ZipFile(made / "a-book.epub") as packed:
        listing = packed.read("content.opf").decode()
        names = packed.namelist()
        assert packed.getinfo("mimetype").compress_type == zipfile.ZIP_STORED
        assert packed.read("mimetype") == b"application/epub+zip"
        modes = {member.external_attr >> 16 for member in packed.infolist()}
        assert modes == {0o644}, "others than who unpacks it may read the files"
        for name in names:
            if name.endswith("html"):
                ET.fromstring(packed.read(name))
    assert names[0] == "mimetype"
    items = ET.fromstring(listing).findall(".//{*}manifest/{*}item")
    held = {item.get("href"): item.get("properties") for item in items}
    assert held["index.xhtml"] == "svg"
    assert not held.keys() - set(names)
    refs = ET.fromstring(listing).findall(".//{*}itemref")
    order = [ref.get("idref") for ref in refs]
    assert len(order) == len(set(order)) > 1


TABS = """
::::{tab-set}
:::{tab-item} CPU
One.
:::
:::{tab-item} GPU
Two.
:::
::::
"""


@pytest.mark.skipif(not shutil.which("epubcheck"), reason="epubcheck is not installed")
def test_a_checker_finds_no_error_in_an_epub(built):
    options = "extensions.append('sphinx_design')\nmyst_enable_extensions = "
    options += (
        "['colon_fence']\ncopyright = epub_identifier = epub_uid = 'a'\nlanguage = 'en'"
    )
    made = built("epub", f"# Page\n\n{TABS}\n", options)
    checker = Path(shutil.which("epubcheck") or "").resolve()  # a script, or a jar
    java = ["java", "-jar"] if checker.suffix == ".jar" else []
    command = [*java, checker, "--error", made / "a-book.epub"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("made", [False, True])
def test_the_list_names_the_files_that_there_will_be(built, made):
    page = "# Page\n\n```{editions}\n```\n"
    text = (built("html", page, f"editions = {made}") / "index.html").read_text("utf-8")
    endings = re.findall(r'href="_downloads/a-book\.(\w+)"', text)
    assert endings == (["zip", "epub", "pdf"] if made else ["zip"])


def test_a_site_becomes_one_page(editions, tmp_path: Path):
    def page(name: str, text: str, following: str = "") -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        link = f'<link rel="next" href="{following}">' if following else ""
        sheet = '<link rel="stylesheet" href="_static/site.css">'
        address = f'<link rel="canonical" href="https://a.book/{name}">'
        head = f"<head><title>Book</title>{sheet}{link}{address}</head>"
        article = f'<article class="bd-article">{text}</article>'
        path.write_text(f"<html>{head}<body>{article}</body></html>")

    page(
        "index.html",
        '<h1>One</h1><a href="part/two.html#there">on</a><a href="x.zip">zip</a>',
        "part/two.html",
    )
    page(
        "part/two.html",
        '<h2 id="there">Two</h2><a href="../index.html">back</a><a href="#there">up</a>'
        '<img loading="lazy" src="../_images/a.svg"><script>no()</script>'
        '<details><summary>s</summary></details><a href="https://jax.dev">out</a>'
        '<a class="receipt" href="#check-one">+</a>'
        '<div class="cell tag_check" id="check-one">assert</div>'
        '<div class="cell tag_hide-input"><details>source</details>figure</div>',
    )
    whole = editions.joined(tmp_path)
    ids = set(re.findall(r'id="([^"]*)"', whole))
    inside = re.findall(r'href="#([^"]*)"', whole)
    assert len(inside) == 3
    assert set(inside) <= ids
    assert 'src="_images/a.svg"' in whole
    assert "<details open" in whole
    assert re.findall(r'<a [^>]*href="(?!#)([^"]*)"', whole) == [
        "https://jax.dev",
        "https://a.book/part/two.html#check-one",
    ]
    assert "figure" in whole
    left_out = ("source", "assert", "x.zip", "no()")
    assert not [text for text in left_out if text in whole]
