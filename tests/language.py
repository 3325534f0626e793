"""Finds turns of phrase that have a plainer wording, and counts three more.

    python -m tests.language                          # what the session lint runs
    python -m tests.language --counts [docs/learn/*]  # each page, the worst first

Only prose is read: Markdown without code, the comments and docstrings of Python, and
below `src/` the messages too, which are all texts of several words.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    *("README.md", "CONTRIBUTING.md", "docs/**/*.md", "noxfile.py", "conf/*.py"),
    *("src/**/*.py", "examples/**/*.py", "tests/**/*.py"),
)

# Regular expressions in which a space also matches the end of a line, and what to
# write instead.
PLACES = "above|after|at|before|behind|below|beside|between|elsewhere|in|once|there"
PHRASES = {
    r"(is|are|was|were) told (?!apart)\w+": "name who reports or decides it",
    r"the ones? that": "name the thing",
    r"such are": "name the things",
    r"makes? of": "say what is done",
    r"(?<!there )is (?-i:none)": "'is not', with a noun",
    r"as \S+ (has|have) (it|them)": "'as in', or a verb of its own",
    rf"stands? ({PLACES})(?! for)": "'is'",
    r"number types?": "'dtype'",
    r"hand(s|ed|ing)? over": "'pass', 'give' or 'dispatch'",
    r"mend(s|ed|ing)?": "'fix' or 'correct'",
}

# What a reader has to decode if there is much of it: a regular expression, and how
# often it may occur in a thousand words, which is how often it does in nine pages of
# JAX's own documentation.
IN_BRACKETS = (  # a capital or code begins it, and it ends, or one inside it does
    r"(?<!\])\((?=[*_\"'“]*[A-Z·])"
    r"(?:[^()]|\([^()]*\))*?(?:[.!?][\"'”*_]*\)|[\w·][.!?]\s(?=[A-Z·])"
    r"(?:[^()]|\([^()]*\))*\))"
)
COUNTS = {
    "sentences in brackets": (IN_BRACKETS, 1.3),
    "'that of', 'those of'": (r"\b(?:[Tt]hat|[Tt]hose)\s+of\b", 0.1),
    "'So' at the beginning": (r"\bSo\b(?!\s+far\b|-)", 0.2),
}
# A page below one of these patterns, and all pages of the pattern together, stay within
# the limits; one occurrence on a page is allowed in any case.
LIMITED = ("docs/learn/*.md", "docs/index.md", "docs/errors/*.md", "src/*")

# Fences of backticks hold code, except the glossary's.
FENCE = re.compile(r"^[ >]*(`{3,})(\{glossary\})?.*?^[ >]*\1$", re.M | re.S)
CODE = re.compile(r"(\{[\w:-]+\})?(`+)(?!`).+?(?<!`)\2(?!`)", re.S)
# Lines of Markdown that are no running text: a page's settings, comments, options and
# fences of directives, headings, targets.
NOT_RUNNING = re.compile(
    r"\A---$[\s\S]*?^---$|^[ ]*%.*$|^[ ]*:[\w-]+:.*$|^[ ]*:{3,}.*$|^#+ .*$"
    r"|^\([\w-]+\)=$|(?<=\])\([^)\s]*\)",
    re.M,
)
WORD = re.compile(r"[^\W\d_][\w'’-]*|·")
# A text of a program that is read as a message has this many words in a row.
WORDS_IN_A_ROW = re.compile(r"\b[A-Za-z'’]+(?:,? [A-Za-z'’]+){2,}")


@dataclass
class Page:
    """A page, or the messages of a package: its words, and where each count occurs."""

    name: str
    words: int = 0
    found: dict[str, list[str]] = field(default_factory=lambda: {c: [] for c in COUNTS})

    def add(self, other: "Page") -> None:
        self.words += other.words
        for count, places in other.found.items():
            self.found[count] += places

    def rate(self, count: str) -> float:
        """How often it occurs in a thousand words."""
        return 1000 * len(self.found[count]) / max(1, self.words)

    def allowed(self, count: str) -> int:
        return max(1, int(COUNTS[count][1] * self.words / 1000))

    def excess(self) -> int:
        over = (len(self.found[count]) - self.allowed(count) for count in COUNTS)
        return sum(max(0, more) for more in over)

    def __str__(self) -> str:
        rates = ", ".join(f"{self.rate(count):.1f} {count}" for count in COUNTS)
        return f"{self.name}: {self.words} words; in a thousand {rates}"


def problems(
    text: str, *, markdown: bool, messages: bool = False
) -> Iterator[tuple[int, str]]:
    """The line of each phrase, with what to do."""
    prose = _markdown_prose(text) if markdown else _python_prose(text)
    pieces = [(1, prose), *(_messages(text) if messages else ())]
    for phrase, instead in PHRASES.items():
        pattern = re.compile(rf"\b{phrase}\b".replace(" ", r"\s"), re.IGNORECASE)
        for line, words in _matches(pattern, pieces):
            yield line, f"{words!r}: {instead}"


def counted(name: str, text: str, *, markdown: bool) -> Page:
    """A page's running text, or a module's messages, with each count's places."""
    if markdown:
        pieces = [(1, NOT_RUNNING.sub(_lines_of, _markdown_prose(text)))]
    else:
        pieces = list(_messages(text))
    page = Page(name, sum(len(WORD.findall(piece)) for _, piece in pieces))
    for count, (pattern, _) in COUNTS.items():
        for line, words in _matches(re.compile(pattern), pieces):
            page.found[count].append(f"{name}:{line}: {words}")
    return page


def pages(patterns: Iterable[str]) -> Iterator[Page]:
    """The pages below the patterns; a folder of Python is one page, its messages."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            page = Page(str(path.relative_to(ROOT)))
            inside = sorted(path.rglob("*.py")) if path.is_dir() else [path]
            for file in inside:
                name, markdown = str(file.relative_to(ROOT)), file.suffix == ".md"
                page.add(counted(name, file.read_text("utf-8"), markdown=markdown))
            if page.words:
                yield page


def over_the_limits(patterns: Iterable[str]) -> Iterator[str]:
    """What is too much, by page, and then in all pages of one pattern together."""
    for pattern in patterns:
        together = Page(f"{pattern} together")
        inside = list(pages([pattern]))
        for page in inside:
            together.add(page)
        for page in inside if len(inside) == 1 else [*inside, together]:
            for count, (_, limit) in COUNTS.items():
                places, allowed = page.found[count], page.allowed(count)
                if len(places) > allowed:
                    yield (
                        f"{page.name}: {len(places)} {count} in {page.words} words, "
                        f"and the limit of {limit} in a thousand allows {allowed}; "
                        f"`python -m tests.language --counts '{pattern}'` names them"
                    )


def _matches(
    pattern: re.Pattern[str], pieces: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, str]]:
    for first, text in pieces:
        for match in pattern.finditer(text):
            yield first + text.count("\n", 0, match.start()), " ".join(match[0].split())


def _markdown_prose(text: str) -> str:
    def inside(fence: re.Match[str]) -> str:
        return fence[0].replace(fence[1], "") if fence[2] else _blank(fence)

    return CODE.sub(_blank, FENCE.sub(inside, text))


def _python_prose(text: str) -> str:
    """The comments and docstrings, each in its line; all other lines are empty."""
    lines = text.split("\n")
    prose = [""] * len(lines)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            prose[token.start[0] - 1] = token.string.strip("#: ")
    for node in _docstrings(ast.parse(text)):
        start, end = node.lineno - 1, node.end_lineno
        prose[start:end] = [line.strip() for line in lines[start:end]]
    return CODE.sub(_blank, "\n".join(prose))


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, described) and ast.get_docstring(node) is not None:
            assert isinstance(node.body[0], ast.Expr)
            yield node.body[0]


def _messages(text: str) -> Iterator[tuple[int, str]]:
    """Texts of several words, apart from docstrings, with `·` for what fills them."""
    tree = ast.parse(text)
    inside = set()  # parts of texts that were read, and texts that only describe
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inside |= {id(v) for v in node.values if isinstance(v, ast.Constant)}
            filled = (
                str(part.value) if isinstance(part, ast.Constant) else "·"
                for part in node.values
            )
            yield from _message(node.lineno, "".join(filled))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _message(node.lineno, node.value)


def _message(line: int, text: str) -> Iterator[tuple[int, str]]:
    prose = " ".join(CODE.sub(_blank, text).split())
    if WORDS_IN_A_ROW.search(prose):
        yield line, prose


def _blank(match: re.Match[str]) -> str:
    return "·" + _lines_of(match)


def _lines_of(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def lint() -> int:
    found = []
    for path in sorted(path for pattern in FILES for path in ROOT.glob(pattern)):
        name = path.relative_to(ROOT)
        markdown, messages = path.suffix == ".md", name.parts[0] == "src"
        text = path.read_text("utf-8")
        for line, problem in problems(text, markdown=markdown, messages=messages):
            found.append(f"{name}:{line}: {problem}")
    found += over_the_limits(LIMITED)
    for problem in found:
        print(problem)
    return int(bool(found))


def report(patterns: Iterable[str]) -> int:
    for page in sorted(pages(patterns), key=lambda p: (-p.excess(), p.name)):
        print(page)
        for places in page.found.values():
            for place in places:
                print(f"    {place}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.language")
    parser.add_argument(
        "--counts", nargs="*", metavar="PATTERN", help="count instead, in these pages"
    )
    patterns = parser.parse_args(arguments).counts
    if patterns is None:
        return lint()
    return report(patterns or ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "src/*"))


if __name__ == "__main__":
    sys.exit(main())
