"""The command line: `python -m justafter.book build`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ._errors import BookError
from ._progress import Progress
from ._settings import Settings


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 if all went well, 1 if the book has a problem."""
    options = _parser().parse_args(arguments)
    progress = Progress()
    try:
        options.run(options, progress)
    except BookError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped: the site is as it was, and what ran is kept", file=sys.stderr)
        return 130
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        print(f"\nthe disk says: {error.strerror}{where}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m justafter.book")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="execute the book and publish the site")
    build.add_argument("--config", type=Path, default=Path("conf"))
    build.add_argument("--output", type=Path, default=Path("_build/html"))
    build.set_defaults(run=_build)
    execute = commands.add_parser("execute", help="execute the book, render nothing")
    execute.set_defaults(run=_execute)
    pin = commands.add_parser("pin", help="accept the outputs as they are now")
    pin.set_defaults(run=_pin)
    record = commands.add_parser("record", help="write what this platform gives")
    record.add_argument("--records", type=Path, default=Path("tests/records"))
    record.set_defaults(run=_record)
    snapshot = commands.add_parser("snapshot", help="write what every cell gives here")
    snapshot.add_argument("file", type=Path)
    snapshot.set_defaults(run=_snapshot)
    drift = commands.add_parser("drift", help="record how two snapshots differ")
    drift.add_argument("base", type=Path)
    drift.add_argument("other", type=Path)
    drift.add_argument("--records", type=Path, default=Path("tests/drift"))
    drift.add_argument("--page", type=Path, default=Path("docs/releases.md"))
    drift.set_defaults(run=_drift)
    for command in (build, execute, pin, record, snapshot):
        command.add_argument("--source", type=Path, default=Path("docs"))
        command.add_argument("--cache", type=Path, default=Path("_build/cache"))
        command.add_argument("--jobs", type=int, help="chapters at once")
    for command in (execute, pin, record, snapshot):
        command.add_argument(
            "--only", nargs="+", action="extend", metavar="CHAPTER", help="by name"
        )
    return parser


def _settings(options: argparse.Namespace, **more: Any) -> Settings:
    if options.jobs is not None:
        more["jobs"] = options.jobs
    if getattr(options, "only", None):
        more["only"] = frozenset(options.only)
    return Settings.of(options.source.resolve(), options.cache.resolve(), **more)


def _build(options: argparse.Namespace, progress: Progress) -> None:
    from ._build import build

    build(
        _settings(options), options.config.resolve(), options.output.resolve(), progress
    )


def _execute(options: argparse.Namespace, progress: Progress) -> None:
    from ._execute import execute

    book = execute(_settings(options), progress)
    if book.errors:
        raise BookError("\n\n".join(map(str, book.errors)))


def _pin(options: argparse.Namespace, progress: Progress) -> None:
    from ._accept import accept

    folder = options.source.resolve().parent / "tests" / "pins"
    accept(_settings(options), folder, progress)


def _record(options: argparse.Namespace, progress: Progress) -> None:
    from ._export import export

    export(_settings(options), options.records, progress)


def _snapshot(options: argparse.Namespace, progress: Progress) -> None:
    from ._drift import snapshot

    taken = snapshot(_settings(options), progress)
    options.file.write_text(json.dumps(taken), "utf-8")


def _drift(options: argparse.Namespace, progress: Progress) -> None:
    from ._drift import add_record, compare

    base, other = (
        json.loads(f.read_text("utf-8")) for f in (options.base, options.other)
    )
    record = compare(base, other)
    add_record(record, options.records, options.page)
    for change in record["changes"]:
        where = f"cell {change['number']}" if "number" in change else "the chapter"
        progress.note(f"{change['docname']}: {where} {change.get('kind', 'broke')}")
    progress.note(f"{len(record['changes'])} of {record['cells']} cells differ")


if __name__ == "__main__":
    sys.exit(main())
