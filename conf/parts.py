"""A drawing for each part of the book, and the time that its chapters take to read.

The drawings stand on the first page of a part and, by the role `part`, on its card. The
minutes are counted from the words and the visible cells of a page, at every build.
"""

from __future__ import annotations

import posixpath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

from executed_book.errors import counted
from executed_book.figures import CYCLE

WORDS_A_MINUTE = 200
#: To read the code of a cell and what came out of it, in minutes.
OF_A_CELL = 0.3

_MINUTES = "minutes"

#: What each part is about, in a field of 72 by 48. The error messages have no drawing
#: and no time: nobody reads them in order, and their page begins with the finder.
DRAWINGS = {
    # steps that lead up, and a point that is reached
    "learn": (
        '<path d="M4 42h14v-10h14v-10h14v-10h14"/>',
        '<circle class="warm" cx="64" cy="7" r="4"/>',
    ),
    # an array, one of whose elements is another in a new array
    "numbers": (
        '<path d="M6 8h60v12H6zM21 8v12M36 8v12M51 8v12"/>',
        '<path d="M6 30h60v12H6zM21 30v12M36 30v12M51 30v12"/>',
        '<path class="warm" d="M24 33h9v6h-9zM28.5 20v10"/>',
    ),
    # a line of code that becomes a list of operations
    "tracing": (
        '<path class="quiet" d="M4 12h18M4 24h12M4 36h16"/>',
        '<path class="warm" d="M28 24h12m-4-4 4 4-4 4"/>',
        '<path d="M48 6h20v9H48zM48 20h20v9H48zM48 34h20v9H48z"/>',
    ),
    # a curve and its tangent
    "derivatives": (
        '<path d="M4 44C26 44 34 40 42 22S58 6 68 6"/>',
        '<path class="warm" d="M28 46 56 2"/>',
    ),
    # one thing around another
    "composing": (
        '<rect x="4" y="4" width="64" height="40" rx="5"/>',
        '<rect class="quiet" x="14" y="11" width="44" height="26" rx="4"/>',
        '<rect class="warm" x="25" y="18" width="22" height="12" rx="3"/>',
    ),
    # a glass over lines of code
    "finding-out": (
        '<path class="quiet" d="M6 10h30M6 22h16M6 34h24"/>',
        '<circle cx="46" cy="22" r="13"/><path d="m55.5 31.5 11 11"/>',
        '<path class="warm" d="M40 22h12"/>',
    ),
    # one array on eight devices
    "devices": (
        '<path d="M6 6h60v36H6zM21 6v36M36 6v36M51 6v36M6 24h60"/>',
        '<path class="warm" d="M13.5 15h45M13.5 33h45"/>',
    ),
    # layers of a network
    "systems": (
        '<path class="quiet" d="M12 12 36 8M12 12l24 16M12 12l24 31"/>',
        '<path class="quiet" d="M12 36 36 8M12 36l24-8M12 36l24 7"/>',
        '<path class="quiet" d="M36 8l24 16M36 28l24-4M36 43l24-19"/>',
        '<circle cx="12" cy="12" r="4"/><circle cx="12" cy="36" r="4"/>',
        '<circle cx="36" cy="8" r="4"/><circle cx="36" cy="28" r="4"/>',
        '<circle cx="36" cy="43" r="4"/>',
        '<circle class="warm" cx="60" cy="24" r="4"/>',
    ),
    # observations, and the curve of a model through them
    "science": (
        '<path d="M4 40C14 40 18 8 28 8S42 34 50 34 60 18 68 18"/>',
        '<path class="quiet" d="M8 32v8M20 14v8M36 16v8M50 30v8M62 16v8"/>',
        '<circle class="warm" cx="8" cy="36" r="2"/>',
        '<circle class="warm" cx="20" cy="18" r="2"/>',
        '<circle class="warm" cx="36" cy="20" r="2"/>',
        '<circle class="warm" cx="50" cy="34" r="2"/>',
        '<circle class="warm" cx="62" cy="20" r="2"/>',
    ),
    # a card with a few lines, one of them marked
    "recipes": (
        '<rect x="14" y="4" width="44" height="40" rx="4"/>',
        '<path class="quiet" d="M22 14h28M22 34h20"/>',
        '<path class="warm" d="M22 24h28"/>',
    ),
    # a dial
    "instruments": (
        '<path d="M8 40a28 28 0 0 1 56 0z"/>',
        '<path class="quiet" d="M17 27l4 3M36 15v5M55 27l-4 3"/>',
        '<path class="warm" d="M36 40 48 23"/>',
    ),
    # a cell and the tick beside it
    "tools": (
        '<path d="M6 8h38v32H6z"/><path class="quiet" d="M13 18h24M13 26h16"/>',
        '<path class="warm" d="m52 26 6 7 10-16"/>',
    ),
    # a form that is retired, and the one in its place
    "older": (
        '<path class="quiet" d="M4 10h23v28H4z" stroke-dasharray="4 3.5"/>',
        '<path class="quiet" d="M10 24h11"/>',
        '<path class="warm" d="M32 24h9m-4-4 4 4-4 4"/>',
        '<path d="M46 10h23v28H46zM52 20h11M52 28h7"/>',
    ),
}


def drawing(name: str) -> nodes.raw:
    """The drawing of a part; what it shows is said beside it, so it has no name."""
    look = f'fill="none" stroke="{CYCLE[0]}" stroke-width="1.6" width="72" height="48"'
    svg = f'<svg class="part" viewBox="0 0 72 48" {look} aria-hidden="true">'
    return nodes.raw("", f"{svg}{''.join(DRAWINGS[name])}</svg>", format="html")


class PartRole(SphinxRole):
    """The drawing of a part, on a card that leads to it."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if self.text in DRAWINGS:
            return [drawing(self.text)], []
        known = ", ".join(sorted(DRAWINGS))
        message = self.inliner.reporter.error(
            f"no part {self.text!r}; there are {known}"
        )
        return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [
            message
        ]


def minutes_of(doctree: nodes.document) -> float:
    """How long a page takes to read."""
    texts = doctree.findall(lambda node: isinstance(node, nodes.paragraph))
    words = sum(len(text.astext().split()) for text in texts)
    return words / WORDS_A_MINUTE + OF_A_CELL * sum(map(_is_seen, _cells(doctree)))


def _cells(doctree: nodes.document) -> list[nodes.container]:
    found = doctree.findall(nodes.container)
    return [node for node in found if node.get("nb_element") == "cell_code"]


def _is_seen(cell: nodes.container) -> bool:
    hidden = (
        "tag_check",
        "tag_solution",
        "tag_exercise-check",
        "tag_hide-cell",
        "tag_remove-cell",
    )
    return not set(hidden) & set(cell["classes"])


def note_minutes(app: Sphinx, doctree: nodes.document) -> None:
    """Keep how long a page takes, for the list of its part."""
    docname = app.env.current_document.docname
    app.env.metadata[docname][_MINUTES] = minutes_of(doctree)


def outdated_parts(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The first pages of parts, if a chapter takes another time than before."""
    now = {name: facts.get(_MINUTES) for name, facts in env.metadata.items()}
    before = getattr(env, "parts_minutes", now)
    env.parts_minutes = now  # type: ignore[attr-defined]
    return [] if before == now else [n for n in now if n.endswith("/index")]


def show(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Draw the part on its first page, and say how long each of its chapters takes."""
    folder, _, name = docname.rpartition("/")
    if name != "index" or app.builder.name == "epub":
        return
    title = doctree.next_node(nodes.title)
    if folder not in DRAWINGS or title is None or title.parent is None:
        return
    times = [_say(term, app.env, folder) for term in list(doctree.findall(nodes.term))]
    place = title.parent.index(title) + 1
    if sum(times):
        chapters = counted(len([t for t in times if t]), "chapter")
        said = f"{chapters}, about {sum(times)} minutes to read"
        title.parent.insert(place, nodes.paragraph("", said, classes=["minutes"]))
    title.parent.insert(place, drawing(folder))


def _say(term: nodes.term, env: BuildEnvironment, folder: str) -> int:
    """Put the minutes of a chapter behind its title in a list; 0 for anything else."""
    link = term.next_node(nodes.reference)
    if link is None or not link.get("internal") or "refuri" not in link:
        return 0
    page = posixpath.normpath(posixpath.join(folder, link["refuri"].partition("#")[0]))
    facts = env.metadata.get(page.removesuffix(".html"), {})
    if _MINUTES not in facts:
        return 0
    minutes = max(5, 5 * round(facts[_MINUTES] / 5))  # an estimate, and said as one
    term += nodes.inline("", f"\N{NO-BREAK SPACE} {minutes} min", classes=["minutes"])
    return minutes


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the role, count while pages are read, and show it when they are written."""
    app.add_role("part", PartRole())
    app.connect("doctree-read", note_minutes)
    app.connect("env-updated", outdated_parts)
    app.connect("doctree-resolved", show)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
