"""Values that a run computed, where the text of a page names their expressions."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

from ..model import Executed

_WAITING = "executed-book-values"

#: For each role and expression the texts that are still to be put in, in their order.
Waiting = dict[tuple[str, str], list[str]]


def line_up(env: BuildEnvironment, executed: Executed, since: int = 1) -> None:
    """Line up the values that the page being read will ask for, from this line on."""
    waiting: Waiting = {}
    for cell, result in executed:
        for value, computed in zip(cell.values, result.values, strict=True):
            if value.line >= since:
                queue = waiting.setdefault((value.role, value.expression), [])
                queue.append(computed.text)
    env.temp_data[_WAITING] = waiting


def refused(
    role: SphinxRole, why: str
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """What a role gives whose text is wrong: an error at its line."""
    message = role.inliner.reporter.error(f"{role.text!r} {why}", line=role.lineno)
    return [role.inliner.problematic(role.rawtext, role.rawtext, message)], [message]


class ValueRole(SphinxRole):
    """A value that the run computed, where the text names its expression.

    Occurrences are matched in the order in which they stand on the page.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        waiting: Waiting = self.env.temp_data.get(_WAITING) or {}
        queue = waiting.get((self.name, " ".join(self.text.split())))
        if not queue:
            why = "was not computed: values belong in the running text of a page that"
            why += " executes, outside of literal directives; write it there"
            return refused(self, why)
        text = queue.pop(0)
        classes = ["value"] if self.name == "value" else ["measured", "no-search"]
        return [nodes.inline(text, text, classes=classes)], []


def setup_values(app: Sphinx) -> None:
    """Show values of the page in its running text."""
    for name in ("value", "measured"):
        app.add_role(name, ValueRole())
