"""The committed questions, and what the search answers."""

import re
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

FILE = Path(__file__).parent / "questions.txt"

ASK = """
(texts) => texts.map((text) => engine.find(text).slice(0, 3).map(({ entry }) =>
  entry.whole ? entry.page : `${entry.page}#${entry.id}`))
"""

PLACES = "() => engine.entries.map((e) => (e.whole ? e.page : `${e.page}#${e.id}`))"


@dataclass(frozen=True)
class Question:
    """What a reader types, and the places that answer it."""

    text: str
    places: frozenset[str]


def questions() -> list[Question]:
    lines = FILE.read_text("utf-8").splitlines()
    rows = [re.split(r" {2,}", line) for line in lines if line and line[0] != "#"]
    return [Question(row[0], frozenset(row[1:])) for row in rows]


def misses(finder: Page, asked: list[Question]) -> list[str]:
    answers = finder.evaluate(ASK, [question.text for question in asked])
    return [
        f"{question.text!r}: found {answer}"
        for question, answer in zip(asked, answers, strict=True)
        if not question.places & set(answer)
    ]
