"""The text that explains a folded output, folded with it.

Where a page asks its reader to predict an output, ``:::{answer}`` after the cell holds
what the output shows, so that nobody reads it before looking.
"""

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective


class Answer(SphinxDirective):
    """Reads an answer like any text of the page."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        answer = nodes.container(is_answer=True, classes=["answer"])
        self.set_source_info(answer)
        self.state.nested_parse(self.content, self.content_offset, answer)
        return [answer]


class Answers(SphinxPostTransform):
    """Move each answer into the fold that MyST-NB has put around the output (at 199).

    In formats that do not fold it stays where the page has it.
    """

    formats = ("html",)
    default_priority = 200

    def run(self, **kwargs: object) -> None:
        fold: HideCodeCellNode | None = None
        for node in list(self.document.findall(nodes.Element)):
            if isinstance(node, nodes.section):
                fold = None
            elif isinstance(node, HideCodeCellNode):
                # MyST-NB gives the fold of a whole cell no parent.
                cell = node.parent
                fold = node if cell and "tag_asked" in cell["classes"] else fold
            elif node.get("is_answer"):
                if fold is None:
                    _refuse(node)
                else:
                    _move(node, fold)
                fold = None


def _move(answer: nodes.Element, fold: HideCodeCellNode) -> None:
    assert answer.parent is not None
    answer.parent.remove(answer)
    fold += answer
    for prompt in ("prompt_show", "prompt_hide"):
        fold[prompt] = fold[prompt].replace("output", "answer")


def _refuse(answer: nodes.Element) -> None:
    logging.getLogger(__name__).warning(
        "this answer has no folded output above it in its section, or another answer"
        " has it\n    → end the paragraph before the cell with a question, the word of"
        " 'executed_book_asks' in bold type; or write this text without the directive",
        location=answer,
    )


def setup_answers(app: Sphinx) -> None:
    """Give pages the directive `answer`."""
    app.add_directive("answer", Answer)
    app.add_post_transform(Answers)
