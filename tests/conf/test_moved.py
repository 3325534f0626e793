"""Every old address of a page leads to the page."""

import re
from pathlib import Path
from types import SimpleNamespace

DOCS = Path(__file__).parents[2] / "docs"


def test_no_old_address_is_a_page_and_each_leads_to_one(moved):
    for folder, pages in moved.MOVED.items():
        for name, new in pages.items():
            assert not (DOCS / folder / f"{name}.md").exists()
            assert (DOCS / f"{new}.md").exists()


def test_the_pages_lead_on_from_their_own_folder(moved, tmp_path: Path):
    new = {page for pages in moved.MOVED.values() for page in pages.values()}

    def write(name: str, error: Exception | None, pages: set[str]) -> None:
        env = SimpleNamespace(found_docs=pages)
        app = SimpleNamespace(builder=SimpleNamespace(name=name), env=env)
        app.outdir = tmp_path
        moved.write_old_addresses(app, error)

    # Another builder, a build that failed, and a book without these pages.
    for none in (("epub", None, new), ("html", ValueError(), new), ("html", None, {})):
        write(*none)
    assert not list(tmp_path.iterdir())
    write("html", None, new)
    written = sorted(tmp_path.rglob("*.html"))
    assert len(written) == sum(map(len, moved.MOVED.values()))
    for page in written:
        text = page.read_text("utf-8")
        [to] = set(re.findall(r'(?:replace\("|url=|href=")([^"]+)"', text))
        target = (page.parent / to).resolve().relative_to(tmp_path).with_suffix("")
        old = page.relative_to(tmp_path).with_suffix("")
        assert target.as_posix() == moved.MOVED[old.parent.name][old.name]
        assert "noindex" in text
