"""Replacing the published site by the new build.

Nothing is deleted that no build made: the folder is only ever replaced if it is empty,
absent, or a site whose every file a build wrote. Where the system can swap two folders
in one step, there is no moment without a site.
"""

import contextlib
import ctypes
import errno
import fcntl
import filecmp
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sphinx.util.matching import Matcher

from ..errors import BookError

#: The file in a site that lists what the build wrote there.
MARK = ".written-by-the-book.json"

#: Files of Sphinx's own that are no part of a site.
_NOT_PUBLISHED = shutil.ignore_patterns(".buildinfo*", "jupyter_execute")


class Site:
    """The place where a site stands, and the work folder beside it."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.work = output.parent / f".{output.name}-work"

    def check(self, sources: Iterable[Path], excluded: Iterable[str]) -> None:
        """Make sure that the place may be replaced; nothing has been done yet.

        Args:
            sources: folders that hold what the book is made from.
            excluded: patterns of paths in the first of them that are no pages.

        Raises:
            BookError: it holds, or is, something that no build made.
        """
        output = self.output
        if output.is_symlink():
            raise _refused(output, "is a link", "name the folder itself")
        if output.exists() and not output.is_dir():
            raise _refused(output, "is a file", "name a folder for the site")
        for source in sources:
            if _is_inside(output, source, excluded):
                raise _refused(
                    output,
                    f"is inside the book's own folder {_shown(source)}",
                    "name a folder elsewhere, such as _build/html",
                )
        if foreign := foreign_files(output):
            more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            raise _refused(
                output,
                f"contains {foreign[0]}{more}, which a build did not make",
                "name an empty folder, or move those files away",
            )
        work = self.work
        is_empty = work.is_dir() and not any(work.iterdir())
        if work.exists() and not (is_empty or (work / "lock").exists()):
            raise _refused(
                work,
                "is needed by the build, and contains files that a build did not make",
                "move it away",
            )

    @contextlib.contextmanager
    def work_alone(self, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Have the work folder for oneself; the lock ends with its owner.

        `waits` is called where another build has it now.
        """
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waits()
                fcntl.flock(lock, fcntl.LOCK_EX)
            # A build that was killed may have moved the site away.
            if (self.work / "old").exists() and not self.output.exists():
                (self.work / "old").rename(self.output)
            try:
                yield
            finally:  # it may have been removed, and made again for the pages
                if self.work.is_dir():
                    (self.work / "lock").touch()

    def publish(self, finished: Path) -> None:
        """Put a copy of the finished site in the place of the old one.

        The work folder has to be one's own.

        Raises:
            BookError: the place holds something new that no build made, or cannot be
                replaced.
        """
        (self.work / "lock").touch()
        if self._shows(finished):
            return
        new, old = self.work / "new", self.work / "old"
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)
        try:
            _copy(finished, new)
            write_mark(new)
            self.check((), ())
            self._exchange(new, old)
        except OSError as error:
            raise BookError(
                f"{_shown(self.output)}: cannot be replaced:"
                f" {error.strerror or error}; the old site is unchanged\n"
                "    → name a folder that you may write to, on a disk with room for it"
            ) from None
        finally:
            for folder in (new, old):
                shutil.rmtree(folder, ignore_errors=True)

    def _shows(self, finished: Path) -> bool:
        """Whether the site has the same files as what was built, byte by byte."""
        names = {n for n in _files(finished) if not _NOT_PUBLISHED("", n.split("/"))}
        if not names == _written(self.output) == set(_files(self.output)) - {MARK}:
            return False
        _, *other = filecmp.cmpfiles(finished, self.output, names, shallow=False)
        return not any(other)

    def _exchange(self, new: Path, old: Path) -> None:
        output = self.output
        if not output.exists():
            new.rename(output)
        elif not _swap(new, output):
            output.rename(old)
            try:
                new.rename(output)
            except OSError:
                old.rename(output)
                raise


_shown = os.path.relpath


def _refused(path: Path, why: str, way_out: str) -> BookError:
    return BookError(f"{_shown(path)}: {why}: nothing was done\n    → {way_out}")


def _is_inside(output: Path, source: Path, excluded: Iterable[str]) -> bool:
    """Whether a site at `output` would be taken for the book's own files.

    It would if it replaced the source, contained it, or lay in it outside of the
    folders that are excluded there.
    """
    place, source = output.resolve(), source.resolve()
    if place == source:
        return True
    if place in source.parents:
        return source.exists()
    if source not in place.parents:
        return False
    inside = place.relative_to(source)
    match = Matcher(list(excluded))
    names = [inside, *inside.parents][:-1]
    return not any(match(name.as_posix()) for name in names)


def foreign_files(folder: Path) -> list[str]:
    """What a folder and those in it hold that no build wrote there."""
    if not folder.is_dir():
        return []
    ours = _written(folder)
    return sorted(name for name in _files(folder) if name not in ours and name != MARK)


def _files(folder: Path) -> Iterator[str]:
    for base, folders, names in os.walk(folder):
        # A link to a folder is listed as a folder, and is not ours either.
        links = [name for name in folders if Path(base, name).is_symlink()]
        inside = Path(base).relative_to(folder)
        for name in (*names, *links):
            yield (inside / name).as_posix()


def _written(folder: Path) -> set[str]:
    """The files that the mark of a site lists; none without one that can be read."""
    try:
        mark = json.loads((folder / MARK).read_text("utf-8"))
        return set(map(str, mark["files"]))
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def write_mark(site: Path) -> None:
    """List in a finished site what was written there."""
    about = "The next build replaces this folder if it holds these files and no others."
    mark = {"about": about, "files": sorted(_files(site))}
    (site / MARK).write_text(json.dumps(mark, indent=0) + "\n", "utf-8")


def _copy(finished: Path, new: Path) -> None:
    try:
        shutil.copytree(finished, new, ignore=_NOT_PUBLISHED)
    except shutil.Error as several:
        # It collects what went wrong, as (source, destination, reason).
        raise OSError(errno.EIO, str(several.args[0][0][2])) from None


_AT_FDCWD, _EXCHANGE = -100, 2


def _swap(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system has no such step."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    names = os.fsencode(one), os.fsencode(other)
    failed = libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    if failed and ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return not failed
