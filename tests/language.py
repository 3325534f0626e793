"""Finds turns of phrase that have a plainer wording: `python -m tests.language`.

Only prose is read: Markdown without code, and the comments and docstrings of Python.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
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
# Fences of backticks hold code, except the glossary's.
FENCE = re.compile(r"^[ >]*(`{3,})(\{glossary\})?.*?^[ >]*\1$", re.M | re.S)
CODE = re.compile(r"(\{[\w:-]+\})?(`+)(?!`).+?(?<!`)\2(?!`)", re.S)


def problems(text: str, *, markdown: bool) -> Iterator[tuple[int, str]]:
    """The line of each phrase, with what to do."""
    prose = CODE.sub(_blank, (_of_markdown if markdown else _of_python)(text))
    for phrase, instead in PHRASES.items():
        pattern = rf"\b{phrase}\b".replace(" ", r"\s")
        for match in re.finditer(pattern, prose, re.IGNORECASE):
            words = " ".join(match[0].split())
            yield prose.count("\n", 0, match.start()) + 1, f"{words!r}: {instead}"


def _of_markdown(text: str) -> str:
    def inside(fence: re.Match[str]) -> str:
        return fence[0].replace(fence[1], "") if fence[2] else _blank(fence)

    return FENCE.sub(inside, text)


def _of_python(text: str) -> str:
    """The comments and docstrings, each in its line; all other lines are empty."""
    lines = text.split("\n")
    prose = [""] * len(lines)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            prose[token.start[0] - 1] = token.string.strip("#: ")
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, described) and ast.get_docstring(node) is not None:
            start, end = node.body[0].lineno - 1, node.body[0].end_lineno
            prose[start:end] = [line.strip() for line in lines[start:end]]
    return "\n".join(prose)


def _blank(match: re.Match[str]) -> str:
    return "·" + "\n" * match[0].count("\n")


def main() -> int:
    status = 0
    for path in sorted(path for pattern in FILES for path in ROOT.glob(pattern)):
        markdown = path.suffix == ".md"
        for line, problem in problems(path.read_text("utf-8"), markdown=markdown):
            print(f"{path.relative_to(ROOT)}:{line}: {problem}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
