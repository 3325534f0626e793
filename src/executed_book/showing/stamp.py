"""Where and when something ran, in words."""

from docutils import nodes

from ..book import ExecutedPage
from ..errors import counted
from ..model import Provenance


def where(facts: Provenance, page: Provenance | None = None) -> str:
    """Where and when a record was made; and if `page` has another JAX, that it has."""
    parts = [
        f"{facts.device_count} × {facts.device_kind}",
        *([f"driver {facts.driver}"] if facts.driver else []),
        facts.versions,
        *([facts.date] if facts.date else []),
    ]
    text = "Recorded on " + ", ".join(parts)
    if page is not None and page.jax != facts.jax:
        text += f"; this page itself with JAX {page.jax}"
    return text


def stamp(page: ExecutedPage) -> nodes.container:
    """When, where and how long a chapter was executed, from what its run recorded.

    A page with outputs that vary says on which other platforms it was recorded.
    """
    run = page.executed.run
    facts = run.provenance
    line = nodes.paragraph("", "Executed ")
    line += _measured(f"{run.date:%Y-%m-%d %H:%M} UTC")
    line += nodes.Text(f" on {devices(facts)} with {facts.versions}, in ")
    line += _measured(f"{run.seconds:.1f} s")
    varies = any(cell.varies for cell in page.executed.chapter.cells)
    if page.records:
        recorded = [r for records in page.records.values() for r in records]
        places = sorted({where(record.provenance) for record in recorded})
        line += nodes.Text("".join(f". {place}" for place in places) + ".")
    elif varies and facts.platform == "cpu":
        line += nodes.Text(". No accelerator has been recorded for this page yet.")
    made = nodes.container("", line, classes=["stamp", "no-search"], ids=["stamp"])
    if count := sum("check" in cell.tags for cell in page.executed.chapter.cells):
        made += nodes.raw("", _SHOWING.format(counted(count, "check")), format="html")
    return made


#: The checks that stand hidden in the text are shown while this is where one is.
_SHOWING = """<p class="show-checks" id="shown-checks">\
<a href="#shown-checks">Show the code of {0} in the text</a>\
<a href="#stamp">Hide the code of {0}</a></p>"""


def devices(facts: Provenance) -> str:
    """The devices that something ran on, in words."""
    count, kind = facts.device_count, facts.device_kind
    devices = f"{count} × {kind}" if count > 1 else kind
    same = facts.platform.lower() == kind.lower()
    return devices if same else f"{facts.platform}: {devices}"


def _measured(text: str) -> nodes.inline:
    return nodes.inline(text, text, classes=["measured"])
