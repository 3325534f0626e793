"""What a page and its cells may say of themselves, and what is wrong with it."""

import math
import re
from pathlib import Path
from typing import Any

import yaml

from ..errors import PageError, did_you_mean
from ..settings import MODES, myst_nb_limit
from .markdown import Stretch

#: What a cell's `:tags:` may say. The first group is ours, the rest MyST-NB's.
TAGS = frozenset(
    {"measured", "device", "check", "keep"}
    | {"exercise", "exercise-check", "solution"}
    | {f"{verb}-{what}" for verb in ("hide", "remove") for what in ("input", "cell")}
    | {"hide-output", "remove-output", "remove-stdout", "remove-stderr"}
    | {"scroll-output", "raises-exception", "skip-execution"}
)

#: What a cell's options may be called.
CELL_OPTIONS = frozenset(
    {"tags", "raises", "warns", "alt", "check", "load", "mystnb", "needs"}
)

_ANNOUNCEMENT = re.compile(r"[\w.]+(: \S|$)")
_ANNOUNCED = (
    'write it as :{name}: "Class: words of its message", or the class alone where it'
    " has no message"
)

#: Options that are text: how that begins, and how it is to be written.
_TEXTS = {
    "raises": (_ANNOUNCEMENT, _ANNOUNCED),
    "warns": (_ANNOUNCEMENT, _ANNOUNCED),
    "check": (
        re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z"),
        "name it in small letters, digits and hyphens: :check: carry-type",
    ),
    **dict.fromkeys(("alt", "load", "needs"), (None, "")),
}


def front_matter(text: str, path: Path) -> tuple[dict[str, Any], int]:
    """The mapping between the page's leading `---` lines, and where the page begins.

    The second is the number of lines that the front matter takes; 0 without one.

    Raises:
        PageError: it is not YAML, or not a mapping, or it has no end.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, 0
    ends = (i for i, s in enumerate(lines[1:], 1) if s.rstrip() in ("---", "..."))
    end = next(ends, None)
    if end is None:
        raise PageError(
            path, 1, "the front matter never ends", "close it with a '---' line"
        )
    try:
        data = yaml.safe_load("\n".join(lines[1:end]))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        raise PageError(
            path,
            (place.line if place else 0) + 2,
            f"broken front matter: {getattr(error, 'problem', None) or error}",
            "write it as YAML: one 'name: value' a line",
        ) from None
    if data is not None and not isinstance(data, dict):
        raise PageError(
            path, 2, "broken front matter", "write it as 'name: value' lines"
        )
    return data or {}, end + 1


def line_of(text: str, word: str) -> int:
    """The first line (from 1) that begins with `word`; 1 if none does."""
    match = re.search(rf"^\s*[\"']?{re.escape(word)}\b", text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 1


def executes(front: dict[str, Any]) -> bool:
    """Whether a page's front matter says that its code cells are run."""
    if front.get("file_format") == "mystnb":
        return True
    jupytext = _mapping(front.get("jupytext"))
    return _mapping(jupytext.get("text_representation")).get("format_name") == "myst"


def _mapping(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}


def check_language(metadata: dict[str, Any], path: Path) -> None:
    """Refuse another language; a kernel of Python may have any name: cells run here.

    Raises:
        PageError: the page says that its cells are written in another.
    """
    language = _mapping(metadata.get("kernelspec")).get("language")
    language = language or _mapping(metadata.get("language_info")).get("name")
    if not str(language or "python").lower().startswith(("python", "ipython")):
        raise PageError(
            *(path, 1, f"its cells are written in {language}"),
            "name the page in nb_execution_excludepatterns: it is shown as it is",
        )


def of_myst_nb(metadata: dict[str, Any]) -> dict[str, Any]:
    """What a page says in `mystnb: {...}`, MyST-NB's options for this page."""
    return _mapping(metadata.get("mystnb"))


def is_off(metadata: dict[str, Any]) -> bool:
    """Whether a page asks MyST-NB not to run it; YAML takes `off` for False."""
    return of_myst_nb(metadata).get("execution_mode") in ("off", False)


def page_options(
    metadata: dict[str, Any], text: str, path: Path
) -> tuple[dict[str, Any], list[PageError]]:
    """What a page says about how it executes: `limit`, `platform`, `reads`.

    MyST-NB's own `mystnb: {execution_timeout: 60}` is a limit as well; -1 lifts it.
    """
    settings, asked = metadata.get("executed_book"), of_myst_nb(metadata)
    options = _mapping(settings)
    timeout = myst_nb_limit(asked.get("execution_timeout"))
    limit, platform = options.get("limit", timeout), options.get("platform")
    names = options.get("reads")
    reads = tuple(map(str, names)) if isinstance(names, list) else None
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    right = (
        (settings is None or isinstance(settings, dict))
        and not set(options) - {"limit", "platform", "reads"}
        and (limit is None or (is_number and (0 < limit < 1e99 or limit == math.inf)))
        and platform in (None, "cpu")
        and (names is None or reads is not None)
        and all((path.parent / name).exists() for name in reads or ())
    )
    mode = asked.get("execution_mode", "auto")
    if mode not in MODES and not is_off(metadata):
        name, what = "mystnb", f"'execution_mode' is {mode!r}"
        way = f"it is one of {', '.join(MODES)}"
    elif asked.get("execution_in_temp") is not None:
        name, what = "mystnb", "'execution_in_temp' holds for the whole book"
        way = "write 'nb_execution_in_temp = True' in conf.py"
    elif not right:
        name = "executed_book"
        what = f"front matter 'executed_book: {settings}' is not understood"
        way = "write 'executed_book: {limit: 60}' for the seconds that a cell may take,"
        way += " 'executed_book: {platform: cpu}' to run there wherever it is built,"
        way += " 'executed_book: {reads: [data]}' where child processes read a file or"
        way += " folder"
    else:
        return {"limit": limit, "platform": platform, "reads": reads}, []
    return {}, [PageError(path, line_of(text, name), what, way)]


def cell_options(
    stretch: Stretch, path: Path, is_strict: bool
) -> tuple[dict[str, Any], list[PageError]]:
    """A cell's options as fields of a `Cell`, and what is wrong with them.

    Only if `is_strict` must each option and tag be one that means something here; in a
    notebook, others belong to other programs.
    """
    options, errors = stretch.options, []

    def wrong(message: str, hint: str) -> None:
        errors.append(PageError(path, stretch.fence, message, hint))

    if stretch.complaint:
        wrong(
            f"the cell's options could not be read: {stretch.complaint}",
            "write each as ':name: value', and text in quotes: :alt: \"A line\"",
        )
    tags = _tags(options.get("tags"), wrong)
    if is_strict:
        for name in sorted(map(str, set(options) - CELL_OPTIONS)):
            wrong(*_unknown("option", name, CELL_OPTIONS))
        for tag in sorted(tags - TAGS):
            wrong(*_unknown("tag", tag, TAGS))
    texts: dict[str, Any] = {}
    for name, (pattern, hint) in _TEXTS.items():
        value = options.get(name)
        if value is not None and not isinstance(value, str):
            wrong(
                f"option {name!r} is not text", f'put it in quotes: :{name}: "{value}"'
            )
        elif pattern is not None and value and not pattern.match(value):
            wrong(f"option {name!r} is {value!r}", hint.format(name=name))
        else:
            texts[name] = value
    texts.pop("load", None)
    fields = {"tags": tags & TAGS, "options": options, **texts}
    fields["needs"] = tuple((texts["needs"] or "").replace(",", " ").split())
    fields["may_raise"] = "raises-exception" in tags
    fields["is_skipped"] = "skip-execution" in tags
    return fields, errors


def _tags(tags: Any, wrong: Any) -> frozenset[str]:
    if tags is None:
        return frozenset()
    if isinstance(tags, str):
        return frozenset(tags.replace(",", " ").split())
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        return frozenset(tags)
    wrong(f"'tags' is {tags!r}", "write them as ':tags: [measured, check]'")
    return frozenset()


def _unknown(what: str, name: str, allowed: frozenset[str]) -> tuple[str, str]:
    """What is said of an option or a tag that does not exist, and the hint."""
    listed = ", ".join(sorted(allowed))
    hint = f"{did_you_mean(name, allowed)}{what}s: {listed}"
    return f"unknown cell {what} {name!r}", hint
