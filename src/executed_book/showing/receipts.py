"""Ticks after sentences, and at each check the sentences that it holds.

Without scripts a tick is a link to the check, which the browser unfolds. The script
beside this module shows the check at the tick.
"""

import html
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole

from ..checking.receipts import COUNTED
from ..model import CellResult, Chapter, Executed, Provenance, Sentence
from ..reading.sentences import NO_CLAIM, names_in
from .stamp import devices
from .transforms import cells_of, part_of
from .values import refused

_SEEN = "executed-book-receipts"

#: How much of the sentences that a tick holds its name repeats (characters).
_LONGEST_NAME = 150


def check_anchor(name: str) -> str:
    """The place of a check on its page."""
    return f"check-{name}"


def claim_anchor(name: str, nth: int) -> str:
    """The place of the nth sentence that names a check, from 1."""
    return f"claim-{name}" if nth == 1 else f"claim-{name}-{nth}"


def claims_of(chapter: Chapter) -> Iterator[tuple[str, str, str]]:
    """Each naming of a check: the check, the place of the tick, what it vouches for."""
    seen = Counter[str]()
    before: list[Sentence] = []
    for sentence in chapter.sentences:
        if not sentence.checks:
            before.append(sentence)
            continue
        is_last = sentence.checks == sentence.vouched
        held = [s.text for s in before if is_last and s.vouched == sentence.checks]
        text = " ".join([*held, sentence.text])
        for name in sentence.checks:
            seen[name] += 1
            yield name, claim_anchor(name, seen[name]), text
        before = [] if is_last else before


class Receipt(TypedDict):
    """What the cell of a check shows: when and where it passed, and what it holds.

    Plain data, since it travels in a notebook. `passed` is the text before the time of
    the page's run, that time, and the text after it. A claim is the place of a tick,
    and the sentences that it vouches for.
    """

    name: str
    passed: tuple[str, str, str]
    claims: list[tuple[str, str]]


def receipts_of(
    executed: Executed, elsewhere: Mapping[int, Sequence[Provenance]]
) -> dict[str, Receipt]:
    """For each check that is named, what its cell shows, by its name.

    `elsewhere` says by records where else cells passed, by their numbers.
    """
    receipts: dict[str, Receipt] = {}
    run = executed.run
    when = f"{run.date:%Y-%m-%d %H:%M} UTC"
    passed = {}
    for cell, result in executed:
        records = elsewhere.get(cell.number, ())
        before, after = _passed(result, _place(run.provenance), records)
        passed[cell.check] = before, when, after
    for name, anchor, text in claims_of(executed.chapter):
        if name in passed:
            new: Receipt = {"name": name, "passed": passed[name], "claims": []}
            receipts.setdefault(name, new)["claims"].append((anchor, text))
    return receipts


def _place(facts: Provenance) -> str:
    return f"{devices(facts)}, {facts.versions}"


def _passed(
    result: CellResult, here: str, records: Sequence[Provenance]
) -> tuple[str, str]:
    """What is said of a check before and after the time of the run `here`."""
    there = " and on ".join(f"{_place(facts)}, {facts.date}" for facts in records)
    count = len(result.reached) + len(result.missed)
    if result.reached or not result.missed:
        after = f" on {here}."
        if result.missed:
            after += f" Of its {count} assertions {len(result.reached)} ran there."
        return "Passed ", after + (f" It also passed on {there}." if there else "")
    before = f"Passed on {there}, as recorded. " if there else ""
    return f"{before}None of its assertions ran ", f" on {here}."


class CheckRole(SphinxRole):
    """The tick after a sentence: a link to the first of the checks that it names."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        seen: Any = self.env.temp_data.setdefault(_SEEN, Counter[str]())
        names = names_in(self.text)
        seen.update(names)
        return [_tick([(name, seen[name]) for name in names])] if names else [], []


def _tick(named: list[tuple[str, int]]) -> nodes.raw:
    """A tick with the places of its sentence, one for each check that it names."""
    place, *more = (html.escape(claim_anchor(*one)) for one in named)
    target, *others = (html.escape(check_anchor(name)) for name, _ in named)
    also = f' data-also="{" ".join(others)}"' if others else ""
    text = f'<a class="receipt" id="{place}" href="#{target}"{also}>✓</a>'
    text += "".join(f'<span id="{one}"></span>' for one in more)
    name, nth = named[0]
    return nodes.raw("", text, format="html", check=name, nth=nth, count=len(named))


class NoCheckRole(SphinxRole):
    """Says of a sentence that it claims nothing; the page shows nothing of it."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if self.text in NO_CLAIM:
            return [], []
        return refused(self, f"is not one of {', '.join(NO_CLAIM)}")


class CountRole(SphinxRole):
    """A count over the whole book, such as ``{receipts}`sentences` ``."""

    def __init__(self, counts: Callable[[], Counter[str]]) -> None:
        super().__init__()
        self._counts = counts

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if self.text in COUNTED:
            number = self._counts()[self.text]
            return [nodes.inline("", f"{number:,}", classes=["value"])], []
        return refused(self, f"is no count: there are {', '.join(COUNTED)}")


class Receipts(SphinxTransform):
    """Put at each check that a sentence names what it holds, and a place to link to."""

    default_priority = 214

    def apply(self, **kwargs: Any) -> None:
        sentences: dict[str, str] = {}
        for cell in cells_of(self.document):
            if receipt := cell["cell_metadata"].get("receipt"):
                source = part_of(cell, "source")
                anchored = cell if source is None else source
                anchored["ids"].append(check_anchor(receipt["name"]))
                below = 0 if source is None else cell.index(source) + 1
                cell.insert(below, _note(receipt))
                sentences.update(receipt["claims"])
        ticks = [tick for tick in self.document.findall(nodes.raw) if "check" in tick]
        for tick, name in zip(ticks, names_of_ticks(ticks, sentences), strict=True):
            _keep_together(tick)
            label = f'<a aria-label="{html.escape(f"Checked: {name}")}"'
            tick[:] = [nodes.Text(tick.astext().replace("<a", label, 1))]


def names_of_ticks(ticks: list[nodes.raw], sentences: dict[str, str]) -> Iterator[str]:
    """What tells each tick from the others of its page: the sentences that it holds.

    The number of its checks follows if there are several. Equal names are numbered.
    """
    seen = Counter[str]()
    for tick in ticks:
        said = sentences.get(claim_anchor(tick["check"], tick["nth"]), "")
        name = textwrap.shorten(said, _LONGEST_NAME, placeholder=" …")
        if tick["count"] > 1:
            name = f"{name} ({tick['count']} checks)"
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}, {seen[name]}"


def _keep_together(tick: nodes.raw) -> None:
    """No line begins with a tick: the space before it does not break."""
    assert tick.parent is not None
    place = tick.parent.index(tick)
    before = tick.parent[place - 1] if place else None
    if isinstance(before, nodes.Text) and before != before.rstrip():
        tick.parent[place - 1] = nodes.Text(before.rstrip() + "\N{NO-BREAK SPACE}")


def _note(receipt: Receipt) -> nodes.container:
    before, when, after = map(html.escape, receipt["passed"])
    claims = "".join(
        f'<li><a href="#{html.escape(anchor)}">{html.escape(text)}</a></li>'
        for anchor, text in receipt["claims"]
    )
    passed = f'{before}<span class="measured">{when}</span>{after} It holds:'
    note = nodes.raw("", f"<p>{passed}</p><ul>{claims}</ul>", format="html")
    return nodes.container("", note, classes=["receipt-note", "no-search"])


def setup_receipts(app: Sphinx, counts: Callable[[], Counter[str]]) -> None:
    """Put a tick behind each sentence that has a check, and its receipt below that."""
    app.add_role("check", CheckRole())
    app.add_role("no-check", NoCheckRole())
    app.add_role("receipts", CountRole(counts))
    app.add_transform(Receipts)
    app.add_css_file("receipts.css")
    app.add_js_file("receipts.js", loading_method="defer")
