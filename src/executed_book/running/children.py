"""Whether a page starts child processes that may read more than their commands name."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ..model import Chapter

_KNOWN = (
    "apt(?:-get)?|cat|conda|curl|date|echo|head|mamba|mkdir|nvidia-smi|pip3?|pwd|rm"
    "|sleep|tail|touch|true|uname|uv|wc|wget|which"
)
_UNSEEN = re.compile(
    r"\b(?:subprocess|multiprocessing|ProcessPoolExecutor)\b"
    r"|\bos\.(?:system|popen|fork|spawn|posix_spawn|exec)"
    r"|(?m:^[ \t]*(?:[\w, ]+= *)?"
    r"(?:!|%(?:%?(?:bash|sh|script|system|sx)\b|%!))!?+[ \t]*+"
    rf"(?!(?:\S*(?:python|sys\.exec)\S* -m )?(?:{_KNOWN})\b(?:(?!&&)[^|;*?`(\n])*$))"
)
_search = cache(_UNSEEN.search)  # many pages read the same modules


def reads_unseen(chapter: Chapter, files: Iterable[Path]) -> bool:
    """Whether a cell, or a module of the book's among the files, starts such one."""
    own = Path(__file__).parents[1]  # IPython reads these
    modules = (f for f in files if f.suffix == ".py" and own not in f.parents)
    texts = (m.read_text("utf-8", "replace") for m in modules if m.is_file())
    return any(map(_search, [*(c.source for c in chapter.cells), *texts]))
