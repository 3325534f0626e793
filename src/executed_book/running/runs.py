"""The runs of chapters that are kept between builds."""

from ..files import digest
from ..model import Chapter, Executed, run_from, to_plain
from ..settings import Settings
from .chapters import Finished
from .children import reads_unseen
from .fingerprint import environment_fingerprint
from .platform import platform_name
from .store import Store


class KeptRuns:
    """Runs, each under a name for all that is known before its chapter runs.

    Raises:
        BookError: JAX does not start at all.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self.unseen = settings, list[str]()
        self.store = Store(settings.cache, settings.project)
        self._environment = environment_fingerprint(platform_name())

    def load(self, chapter: Chapter) -> Executed | None:
        """The chapter with its run, if it holds; see `unseen` where nobody knows."""
        entry = self.store.load(chapter.docname, self._key(chapter)) or {}
        try:
            run = run_from(entry["run"], entry["seal"])
            files = map(self._settings.project.joinpath, entry["depends"]["files"])
        except (KeyError, TypeError):
            return None
        if chapter.reads is None and reads_unseen(chapter, files):
            self.unseen.append(chapter.docname)
            return None
        is_whole = len(run.results) == len(chapter.cells)
        return Executed(chapter, run) if is_whole else None

    def save(self, chapter: Chapter, finished: Finished) -> Executed:
        """Keep a run; the chapter with it, sealed."""
        plain = to_plain(finished.run)
        entry = {"run": plain, "depends": finished.depends}
        seal = self.store.save(chapter.docname, self._key(chapter), entry)
        return Executed(chapter, run_from(plain, seal))

    def expected_seconds(self, chapter: Chapter) -> float:
        """A guess of how long a chapter takes: its newest kept run, or its length.

        Measured cells repeat what they measure, and keep all other cells waiting.
        """
        for path in self.store.entries(chapter.docname):
            entry = self.store.read(path) or {}
            try:
                return run_from(entry["run"]).seconds
            except (KeyError, TypeError):
                continue
        measured = sum("measured" in cell.tags for cell in chapter.cells)
        return 1.0 * len(chapter.cells) + 4.0 * measured

    def _key(self, chapter: Chapter) -> str:
        cells = []
        for cell in chapter.cells:
            values = [value.expression for value in cell.values]
            is_measured = "measured" in cell.tags
            cells.append([cell.source, is_measured, cell.is_skipped, values])
        settings = self._settings
        style = sorted((k, str(v)) for k, v in settings.figure_style.items())
        shown = [settings.figures, style, settings.folder]
        about = (chapter.docname, chapter.platform, cells, shown)
        read = [chapter.reads] if chapter.reads else []
        return digest([*about, self._environment, *read])
