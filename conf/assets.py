"""One style sheet and one script for a page, in place of the twenty that it asks for.

The theme and the extensions each bring files of their own. They are joined here in the
order in which a page would load them, without what no page uses: Font Awesome (the few
icons are drawn in `icons.css`), and the search scripts, which load when one searches.
The text does not wait for the script, which is deferred.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

#: The theme's own, which its templates name and Sphinx does not list.
_SHEETS_FIRST = ("styles/pydata-sphinx-theme.css", "basic.css")
_SCRIPTS_LAST = ("scripts/bootstrap.js", "scripts/pydata-sphinx-theme.js")

#: Left out: the text of a page is marked by `search.js`, in the article alone.
_UNUSED = {"sphinx_highlight.js"}

#: Templates of the themes, which Sphinx copies as if they were pages of the site.
_NO_PAGES = "*webpack-macros.html"

_ATTRIBUTE = "joined_assets"

_ICON_RULE = re.compile(
    r"\.fa-[^{}]*\{--fa:[^}]*\}|@font-face\{[^}]*Font Awesome[^}]*\}"
)
#: A rule, one for the dark theme that a script sets, and what holds for paper alone.
_RULE = re.compile(r"[^{}]*+\{[^{}]*\}")
_DARK = re.compile(r"html\[data-theme=[\"']?dark[\"']?\][^{}]*\{")
_PRINT = re.compile(r"@media print\s*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_BY_HAND = "without-scripts.css"

_COMMENT = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)
_URL = re.compile(r"url\((['\"]?)(?!data:|#|https?:)([^)'\"]+)\1\)")


def joined_sheets(static: Path, names: Iterable[str]) -> str:
    """The style sheets as one, whose URLs are relative to `static` itself."""
    parts = []
    for name in names:
        text = _COMMENT.sub("", (static / name).read_text("utf-8"))
        text = _ICON_RULE.sub("", re.sub(r"@import[^;]*;", "", text))
        base = posixpath.dirname(name)
        parts.append(_URL.sub(lambda m, base=base: f"url({_moved(base, m[2])})", text))
    return "\n".join(re.sub(r"\n\s*", "\n", part) for part in parts)


def _moved(base: str, address: str) -> str:
    return posixpath.normpath(posixpath.join(base, address))


def _below_static(sheet: str) -> str:
    """A sheet of `_static` for a page beside that folder that holds the sheet."""
    return _URL.sub(lambda m: f"url({_moved('_static', m[2])})", sheet)


def dark_without_scripts(sheet: str) -> str:
    """The rules of the dark theme once more, for who prefers it and runs no script.

    A page without scripts keeps the theme "auto", which is the light one.

    >>> print(dark_without_scripts("html[data-theme=dark] p{color:red}p{margin:0}"))
    @media screen and (prefers-color-scheme:dark){
    html[data-theme=auto] p{color:red}
    }
    """
    rules = filter(_DARK.search, _RULE.findall(_PRINT.sub("", sheet)))
    auto = [re.sub(r"data-theme=[\"']?dark[\"']?", "data-theme=auto", r) for r in rules]
    body = "\n".join(rule.strip() for rule in auto)
    return f"@media screen and (prefers-color-scheme:dark){{\n{body}\n}}"


def joined_scripts(static: Path, names: Iterable[str]) -> str:
    """The scripts as one; each ends before the next begins."""
    texts = [(static / name).read_text("utf-8") for name in names]
    return "\n;\n".join(re.sub(r"//# sourceMappingURL.*", "", text) for text in texts)


def _names(assets: Iterable[Any]) -> list[str]:
    """The files below `_static` that a list of Sphinx's names, each once."""
    found = [str(getattr(asset, "filename", asset)) for asset in assets]
    local = [name.partition("?")[0] for name in found if name.startswith("_static/")]
    return list(dict.fromkeys(name.removeprefix("_static/") for name in local))


def join_assets(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Hand the page its files, which the first page of a build has written."""
    assets = getattr(app.builder, _ATTRIBUTE, None)
    if assets is None:
        sheets = [*_SHEETS_FIRST, *_names(context["css_files"])]
        scripts = [*_names(context["script_files"]), *_SCRIPTS_LAST]
        static = Path(app.outdir, "_static")
        try:
            sheet = joined_sheets(static, sheets)
            plain = (static / _BY_HAND).read_text("utf-8") + dark_without_scripts(sheet)
            script = joined_scripts(static, [s for s in scripts if s not in _UNUSED])
            assets = {
                "joined_sheet": _written(static, "site.css", sheet),
                "plain_sheet": _written(static, "site-without-scripts.css", plain),
                "joined_script": _written(static, "site.js", script),
                "sheet_text": _below_static(sheet),
                "plain_text": _below_static(plain),
            }
        except OSError as error:
            raise ExtensionError(f"the page's style or script: {error}") from error
        setattr(app.builder, _ATTRIBUTE, assets)
    context.update(assets)


def _written(static: Path, name: str, text: str) -> str:
    """Write one of them; its name with a mark that changes with the content."""
    (static / name).write_text(text, "utf-8")
    return f"{name}?v={hashlib.sha256(text.encode()).hexdigest()[:12]}"


def rewrite_if_changed(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """All pages, if a style or script of the book's own is another than before."""
    folders = [Path(app.confdir, name) for name in ("static", "templates")]
    files = sorted(path for folder in folders for path in folder.rglob("*.*"))
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    before = getattr(env, _ATTRIBUTE, digest)
    setattr(env, _ATTRIBUTE, digest)
    return sorted(env.found_docs) if before != digest else []


def remove_templates(app: Sphinx, exception: Exception | None) -> None:
    """Keep the themes' templates from being published."""
    for template in Path(app.outdir, "_static").glob(_NO_PAGES):
        template.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Join what pages load, as late as may be."""
    app.connect("html-page-context", join_assets, priority=990)
    app.connect("env-updated", rewrite_if_changed)
    app.connect("build-finished", remove_templates)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
