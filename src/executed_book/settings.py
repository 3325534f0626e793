"""The options of a build, each declared once, and what they come to together."""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from .errors import BookError, did_you_mean
from .figures import Style, light_style

#: What the rules ask of a book that chooses them, by name.
RULES = {
    "options": "cells have no options and tags but those that mean something",
    "stderr": "what a cell writes to stderr is announced with `:warns:`",
    "noise": "no output holds an address, a path or a color of one machine",
    "figures": "each figure has a text for those who do not see it",
    "measured": "output that varies is held by an assert",
    "numbers": "no measured number is typed into running text",
    "receipts": "a check can fail, and not whatever its libraries do",
    "programs": "each cell can be copied as a program that gives what the page shows",
}


@dataclass(frozen=True)
class Option:
    """One value in `conf.py`: its name without the prefix, and what it may be.

    `read` gives it in the form of the field of `Settings`, or raises `ValueError` or
    `TypeError` where it is nothing that the option may be. A command line gives text,
    so numbers and lists may be text as well. Where the option is not set, the field has
    its default.
    """

    name: str
    read: Callable[[Any], Any]
    means: str


PREFIX = "executed_book_"

#: Options of what pages offer, each with its default, and what Sphinx makes anew if it
#: has changed.
OFFERING: dict[str, tuple[Any, Literal["env", "html"]]] = {
    "asks": ("", "env"),
    "colab": ("", "html"),
    "install": ([], "env"),
    "install_also": ({}, "env"),
    "install_environ": ({}, "html"),
}

#: What MyST-NB's `execution_mode` may be: `off` runs no page, and any other each page.
MODES = ("off", "auto", "force", "cache", "inline")


def _accepted(value: Any, is_valid: bool) -> Any:
    if not is_valid:
        raise ValueError(value)
    return value


def _folder(value: Any) -> Path:
    return Path(_accepted(value, isinstance(value, str)))


def _positive(value: Any) -> float:
    number = float(_accepted(value, not isinstance(value, bool)))
    return float(_accepted(number, number > 0))


def _count(value: Any) -> int:
    number = _positive(value)
    return int(_accepted(number, number.is_integer()))


def _rules(value: Any) -> frozenset[str]:
    names = frozenset(RULES if value == "all" else _texts(value))
    return frozenset(_accepted(names, names <= RULES.keys()))


def _texts(value: Any) -> tuple[str, ...]:
    """A list of texts, or one text with commas."""
    texts = value.split(",") if isinstance(value, str) else value
    is_list = isinstance(texts, list | tuple | set)
    return tuple(_accepted(texts, is_list and all(isinstance(v, str) for v in texts)))


def _claims(value: Any) -> dict[str, tuple[str, ...]]:
    kinds = {"under", "after", "asking"}
    _accepted(value, isinstance(value, dict) and set(value) <= kinds)
    lists = (_accepted(texts, not isinstance(texts, str)) for texts in value.values())
    return dict(zip(value, map(_texts, lists), strict=True))


OPTIONS = (
    Option("cache", _folder, "the folder where runs are kept between builds"),
    Option("outputs", _folder, "the folder with what cells gave, by place"),
    Option(
        "programs",
        _folder,
        "the folder with the verdicts on programs, which CI asks of each",
    ),
    Option("rules", _rules, f"'all', or some of {', '.join(RULES)}"),
    Option(
        "claims",
        _claims,
        "a dict that says what needs a check: 'under', titles of sections, means their"
        " lists; 'after', bold words, the paragraphs of a section that begin with them;"
        " 'asking', titles of sections, means that none of their sentences claims",
    ),
    Option(
        "bound",
        _texts,
        "a list of patterns: pages where an unbound universal sentence is an error",
    ),
    Option("cell_seconds", _positive, "how many seconds one cell may run"),
    Option(
        "output_limit",
        _count,
        "how many characters a cell may print; it may show fifty times as many bytes of"
        " images",
    ),
    Option(
        "memory",
        lambda value: 0.0 if value in (0, "0") else _positive(value),
        "how many gigabytes of memory a page may hold while it runs; 0 is a quarter of"
        " the machine's, and 4 at least",
    ),
    Option(
        "figures",
        lambda value: _accepted(value, value in ("png", "svg", "themed")),
        "how figures are drawn: 'png', 'svg', or 'themed', as SVG in one style that"
        " has a twin for a dark theme",
    ),
)


def check_options(options: Mapping[str, Any], overrides: Iterable[str]) -> None:
    """Refuse an option called like ours that there is not, and what MyST-NB refuses.

    Args:
        options: what `conf.py` says.
        overrides: the names of options that a command line gives.

    Raises:
        BookError: it names the option, and what may have been meant.
    """
    from myst_nb.core.config import NbParserConfig  # not in the processes of pages

    known = [PREFIX + n for n in (*(option.name for option in OPTIONS), *OFFERING)]
    for name in (*options, *overrides):
        if name.startswith(PREFIX) and name not in known:
            hint = did_you_mean(name, known)
            raise BookError(f"there is no option {name}\n    → {hint}correct it")
    theirs = {f"nb_{field.name}": field.name for field in fields(NbParserConfig)}
    try:
        NbParserConfig(**{theirs[n]: options[n] for n in theirs & options.keys()})
    except (TypeError, ValueError) as error:
        what = f"conf.py, in an option of MyST-NB: {error.args[0]}"
        raise BookError(f"{what}\n    → correct it, or take it out") from None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


@dataclass(frozen=True)
class Settings:
    """How a book is read, executed and checked.

    Attributes:
        source: the folder with the chapters.
        cache: where executed chapters are kept between builds.
        include, exclude: patterns of the pages that belong to the book, and of those
            that do not, as in Sphinx's configuration.
        not_executed: patterns of pages that are rendered as they are, as in MyST-NB's
            `nb_execution_excludepatterns`.
        jobs: how many chapters run at once.
        may_fail: whether a cell that nobody announced may fail, as in MyST-NB's
            `nb_execution_allow_errors`.
        folder: where cells run: "page", the page's own folder, or "empty", a new one,
            as in MyST-NB's `nb_execution_in_temp`.
        compares: whether a run is compared with the accepted outputs.
        only: the chapters to look at, by name; None for all.

    The others are options of `conf.py`: see `OPTIONS`.
    """

    source: Path
    cache: Path
    include: tuple[str, ...] = ("**",)
    exclude: tuple[str, ...] = ()
    not_executed: tuple[str, ...] = ()
    jobs: int = field(default_factory=_cores)
    cell_seconds: float = 180.0
    output_limit: int = 1_000_000
    memory: float = 0.0
    may_fail: bool = False
    folder: str = "page"
    figures: str = "png"
    rules: frozenset[str] = frozenset()
    claims: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    bound: tuple[str, ...] = ()
    outputs: Path | None = None
    compares: bool = True
    programs: Path | None = None
    only: frozenset[str] | None = None

    @property
    def project(self) -> Path:
        """The folder whose files a chapter may read: the source's parent."""
        return self.source.parent

    @property
    def outputs_folder(self) -> Path:
        """The folder with what cells gave, for a command that needs one.

        Raises:
            BookError: `conf.py` names none.
        """
        if self.outputs is None:
            raise BookError(
                "nowhere to keep outputs\n    → name a folder in conf.py:"
                ' executed_book_outputs = "../outputs/cells"'
            )
        return self.outputs

    @property
    def memory_bytes(self) -> float:
        """How much memory a chapter's process may hold (bytes)."""
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return self.memory * 1e9 or max(4e9, total / 4)

    @property
    def figure_style(self) -> Style:
        """Matplotlib's settings for the figures of chapters."""
        return light_style() if self.figures == "themed" else {}


def settings_of(
    get: Callable[[str], Any],
    source: Path,
    config: Path,
    usual_cache: Path,
    **more: Any,
) -> Settings:
    """The settings that a book's configuration comes to.

    Args:
        get: gives the value of an option of `conf.py`, or None where it is not set.
        source: the folder with the chapters.
        config: the folder with `conf.py`, from where folders are named.
        usual_cache: where runs are kept if nobody says where.
        more: settings that were given elsewhere.

    Raises:
        BookError: an option has a value that it may not have.
    """
    values = [(option, get(PREFIX + option.name)) for option in OPTIONS]
    settings = {o.name: _read(o, v, config) for o, v in values if v not in (None, "")}
    settings |= {
        "include": _patterns(get, "include_patterns") or ("**",),
        "exclude": _patterns(get, "exclude_patterns"),
        "not_executed": _patterns(get, "nb_execution_excludepatterns"),
        "may_fail": _is_set(get("nb_execution_allow_errors")),
    }
    timeout = myst_nb_limit(get("nb_execution_timeout"))
    if timeout is not None:
        settings.setdefault("cell_seconds", timeout)
    if _is_set(get("nb_execution_in_temp")):
        settings["folder"] = "empty"
    formats, kinds = {*(get("nb_custom_formats") or ())}, get("source_suffix")
    if isinstance(kinds, dict):
        formats |= {suffix for suffix, kind in kinds.items() if kind == "myst-nb"}
    if other := sorted(formats - {".md", ".ipynb"}):
        raise BookError(
            f"conf.py: {', '.join(other)} in nb_custom_formats or source_suffix; only"
            " .md and .ipynb run\n    → convert these pages with jupytext"
        )
    mode = get("nb_execution_mode")
    if mode not in (None, "", *MODES):  # MyST-NB asks only what conf.py says
        raise BookError(
            f"conf.py: nb_execution_mode is {mode!r}\n"
            f"    → it is one of {', '.join(MODES)}"
        )
    if mode == "off":
        settings["not_executed"] = ("**",)
    return Settings(source, **{"cache": usual_cache, **settings, **more})


def _read(option: Option, value: Any, config: Path) -> Any:
    """The value of an option that is set, in the form of the field of `Settings`."""
    try:
        read = option.read(value)
    except (TypeError, ValueError, OverflowError):
        raise BookError(
            f"conf.py: {PREFIX}{option.name} is {value!r}\n    → it is {option.means}"
        ) from None
    return (config / read).resolve() if isinstance(read, Path) else read


def myst_nb_limit(timeout: Any) -> float | None:
    """The seconds that MyST-NB's `execution_timeout` allows; None if it is not set.

    In MyST-NB, zero and negative numbers mean that there is no limit.

    >>> myst_nb_limit(60), myst_nb_limit("-1")
    (60.0, inf)
    """
    try:
        number = float(timeout)
    except (TypeError, ValueError):
        return None
    return number if number > 0 else math.inf


def _patterns(get: Callable[[str], Any], name: str) -> tuple[str, ...]:
    from sphinx.util.matching import Matcher  # not in the processes of pages

    value = get(name) or ()
    try:
        patterns = _texts(value)
        Matcher(list(patterns))
    except (TypeError, ValueError, re.error) as error:
        why = f": {error}" if isinstance(error, re.error) else ""
        raise BookError(
            f"conf.py: {name} is {value!r}{why}\n    → it is a list of patterns"
        ) from None
    return patterns


def _is_set(value: Any) -> bool:
    """Whether an option is on, also where a command line says so as text."""
    return bool(value) and value not in ("0", "false", "False")
