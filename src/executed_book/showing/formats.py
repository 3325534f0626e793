"""What a reader takes away of a page: it as Markdown, and it as a notebook.

Both are made from the finished page, so they read as it does: values are filled in and
links lead to the site. Of a notebook the code is the chapter's, and the outputs are
those of its run. An exercise in it can be done: its cell is as handed out, the next one
checks the answer, and the solution is folded.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import nbformat
from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ..model import Cell, CellResult, Executed, Output
from ..programs.snippets import raised
from .exercises import CHECK, SOLUTION, checks_first

#: What is on a page and says nothing on paper.
_LEFT_OUT = (
    ".headerlink, .show-checks, .program-holder, .no-program, .only-dark,"
    " .sd-tab-set > input, .on-screen, script, style, summary > .expanded"
)
_CODE, _TAG = re.compile(r"<pre>(.*?)</pre>", re.DOTALL), re.compile(r"<[^>]*>")
_FENCED = re.compile(r"(^(?:`{3,})[^`\n]*\n.*?^`{3,}$)", re.MULTILINE | re.DOTALL)

#: Stands for a code cell while the rest of a page becomes Markdown. Letters and digits
#: alone: anything else would be escaped on the way.
_CELL = "CODECELL{}ENDOFCELL"
_CELLS = re.compile(r"\s*CODECELL(\d+)ENDOFCELL\s*")

#: What a notebook folds: JupyterLab, VS Code and Colab all fold it in a text cell.
_FOLDED = "<details>\n<summary>{}</summary>\n\n{}\n\n</details>"


class _Writer(MarkdownConverter):
    """HTML to Markdown, with formulas as TeX and code in fences of its language."""

    def convert_math(self, element: Tag, text: str, parent_tags: Any) -> str:
        formula = str(element.get("alttext") or element.get_text())
        block = element.get("display") == "block"
        return f"\n\n$$\n{formula}\n$$\n\n" if block else f"${formula}$"

    def convert_pre(self, element: Tag, text: str, parent_tags: Any) -> str:
        code = element.get_text().strip("\n")
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
        return f"\n\n{fence}{_language(element)}\n{code}\n{fence}\n\n"

    def convert_summary(self, element: Tag, text: str, parent_tags: Any) -> str:
        return f"\n\n**{' '.join(text.split())}**\n\n" if text.strip() else ""

    convert_dt = convert_summary

    def convert_dd(self, element: Tag, text: str, parent_tags: Any) -> str:
        return f"\n\n{text.strip()}\n\n"


def _language(code: Tag) -> str:
    if code.find_parent(class_="cell_output"):
        return "text"
    block = code.find_parent(class_=re.compile(r"^highlight-"))
    names = block.get("class") if block else None
    languages = [str(n)[10:] for n in names or () if str(n).startswith("highlight-")]
    lexers = {"ipython3": "python", "python3": "python", "default": "", "none": "text"}
    return lexers.get(languages[0], languages[0]) if languages else ""


def markdown_of(page: BeautifulSoup | Tag) -> str:
    """A readable page as Markdown, with what its cells gave.

    >>> markdown_of(readable("<h1>One</h1><p>A <b>b</b></p>", "a", ""))
    '# One\\n\\nA **b**\\n'
    """
    text = _Writer(heading_style="ATX", bullets="-").convert_soup(page)
    parts = _FENCED.split(text)  # the text between the fences, and they themselves
    parts[::2] = [re.sub(r"\n{3,}", "\n\n", part) for part in parts[::2]]
    return "".join(parts).strip() + "\n"


def readable(body: str, page: str, site: str) -> BeautifulSoup:
    """A page's body with what is said, and with whole addresses.

    Where the site has no address, what leads to its pages is text: a link would be dead
    wherever a reader keeps the file.

    >>> link = '<a class="headerlink">#</a><a href="b.html">b</a>'
    >>> readable(link, "n/a", "https://s.dev"), readable(link, "n/a", "")
    (<a href="https://s.dev/n/b.html">b</a>, b)
    """
    # Of code the text is kept; its tokens are most of a page's elements.
    body = _CODE.sub(lambda code: _TAG.sub("", code[1]).join(("<pre>", "</pre>")), body)
    soup = BeautifulSoup(body, "html.parser")
    # First what is most of a page, so that less has to be looked through.
    for lens in soup.find_all("div", class_="ja-lens"):
        told = soup.new_tag("pre")
        told.string = text_of_lens(lens)
        lens.replace_with(told)
    for element in soup.select(_LEFT_OUT):
        element.decompose()
    for drawn in soup.select("svg[aria-label]"):  # a notebook shows no SVG in its text
        drawn.replace_with(f"(A drawing. {drawn['aria-label']})")
    for element in soup.select("a[href], img[src]"):
        name = "href" if element.name == "a" else "src"
        address = str(element[name])
        if site:
            element[name] = urljoin(f"{site.rstrip('/')}/{page}.html", address)
        elif urlsplit(address).scheme:
            continue
        elif element.name == "a":
            element.unwrap()
        else:
            element.replace_with(f"(A figure. {element.get('alt') or ''})")
    return soup


def text_of_lens(lens: Tag) -> str:
    """What a lens shows, as text: the source, the equations, and the kernels.

    In the browser one points at a piece and sees what it became. Here an equation names
    the kernel that it went into, and a kernel's line the equation that it comes from.
    """
    lines = []
    for part in lens.select(
        ".ja-summary, .ja-caption, .ja-file, pre, .ja-io, .ja-q, .ja-k"
    ):
        classes = list(part.get("class") or ())
        if part.name == "pre":
            lines += [f"    {line}" for line in part.get_text().splitlines()]
        elif "ja-k" in classes:
            lines += [f"  {_words(part.summary)}"] if part.summary else []
            lines += [f"    {_words(row)}" for row in part.select(".ja-i")]
        elif "ja-caption" in classes:
            lines += ["", f"{_words(part)}:"]
        else:
            indent = "" if "ja-summary" in classes else "  "
            lines.append(indent + _words(part))
    return "\n".join(lines).strip("\n")


def _words(part: Tag) -> str:
    return " ".join(part.get_text(" ").split())


def notebook_of_page(executed: Executed, page: BeautifulSoup, first: str) -> str:
    """A chapter's notebook as its page reads, with the outputs of its run.

    Cells that are announced to raise carry the tag `raises-exception`, so that running
    all cells goes on after them. So do the checks of exercises, which fail until the
    exercise is solved.

    Args:
        executed: the chapter with its run.
        page: the page as it is readable, which is taken apart.
        first: the code of a first cell, which installs; none where it is empty.
    """
    for note in page.select(".install-note"):  # the first cell does it
        note.decompose()
    shown = checks_first(list(executed), lambda pair: pair[0].tags)
    code = [_taken(cell, result) for cell, result in shown]
    cells = list(_in_page_order(code, page))
    if first:
        cells.insert(0, new_code_cell(first))
    for nth, cell in enumerate(cells):
        cell["id"] = f"part-{nth}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.validate(notebook)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _taken(cell: Cell, result: CellResult) -> NotebookNode:
    """A cell as a notebook has it: a solution is folded, and a check says its yes."""
    if SOLUTION in cell.tags:
        code = f"```python\n{cell.source.strip()}\n```"
        folded: NotebookNode = new_markdown_cell(_FOLDED.format("Solution", code))
        return folded
    made = _code_cell(cell, result)
    if "check" in cell.tags:  # nobody has to read it on the way
        made["metadata"]["jupyter"] = {"source_hidden": True}
    if CHECK in cell.tags:
        made["source"] = (
            f"# Check your answer: run this cell.\n{made['source']}\nprint('Correct')"
        )
        made["metadata"]["tags"] = sorted({*cell.tags, "raises-exception"})
        made["outputs"], made["execution_count"] = [], None
    return made


def _code_cell(cell: Cell, result: CellResult) -> NotebookNode:
    announced = raised(cell, result) is not None
    tags = sorted(cell.tags | ({"raises-exception"} if announced else set()))
    made: NotebookNode = new_code_cell(
        "" if cell.is_skipped else cell.source.strip("\n"),
        execution_count=cell.number,
        metadata={"tags": tags} if tags else {},
        outputs=[from_dict(_numbered(o, cell.number)) for o in result.outputs],
    )
    return made


def _numbered(output: Output, number: int) -> Output:
    if output["output_type"] == "execute_result":
        return {**output, "execution_count": number}
    return output


def _in_page_order(
    code: list[NotebookNode], soup: BeautifulSoup
) -> Iterator[NotebookNode]:
    """The page's text with the code cells in their places, and all of them."""
    sources = [_shown_code(cell) for cell in code]
    answers: dict[int, list[NotebookNode]] = {}
    shown = -1
    for box in soup.select("div.cell"):
        block = box.select_one(".cell_input pre")
        text = block.get_text().strip() if block else ""
        # A cell that the page does not show goes with the next one that it shows.
        later = [k for k in range(shown + 1, len(code)) if sources[k] == text]
        if later:
            shown = later[0]
            told = [answer.extract() for answer in box.select(".answer")]
            answers[shown] = [
                new_markdown_cell(_FOLDED.format("Answer", markdown_of(part).strip()))
                for part in told
            ]
            if "tag_asked" in (box.get("class") or ()):  # one is to guess it first
                code[shown]["metadata"]["jupyter"] = {"outputs_hidden": True}
            box.replace_with(soup.new_string(f"\n{_CELL.format(shown)}\n"))
        else:
            box.decompose()
    # Texts and numbers of cells in turns; all cells that remain follow the last text.
    parts = _CELLS.split(markdown_of(soup))
    done = 0
    for text, number in zip(
        parts[::2], [*parts[1::2], str(len(code) - 1)], strict=True
    ):
        if text.strip():
            yield new_markdown_cell(text.strip("\n"))
        for k in range(done, int(number) + 1):
            yield code[k]
            yield from answers.get(k, ())
        done = int(number) + 1


def _shown_code(cell: NotebookNode) -> str:
    """The code of a notebook's cell as its page has it."""
    source = str(cell["source"])
    if cell["cell_type"] == "markdown":  # a solution
        source = source.partition("```python\n")[2].rpartition("\n```")[0]
    lines = source.split("\n")
    is_check = CHECK in cell["metadata"].get("tags", ())
    return "\n".join(lines[1:-1] if is_check else lines).strip()
