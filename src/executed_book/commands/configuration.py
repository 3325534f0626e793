"""What Sphinx's configuration says that is needed before Sphinx runs."""

import dataclasses
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphinx.config import Config
from sphinx.errors import SphinxError
from sphinx.util.tags import Tags

from ..errors import BookError, PageError
from ..settings import Settings, check_names, from_text, settings_of


def read_settings(
    config: Path, source: Path, overrides: Mapping[str, str], **more: Any
) -> Settings:
    """The settings of the book whose `conf.py` is in the folder `config`.

    `overrides` are options given on the command line; `more` are settings.

    Raises:
        BookError: there is no `conf.py`, or it cannot be read, or an option of ours is
            unknown or has a value that it may not have.
    """
    if not (config / "conf.py").is_file():
        raise BookError(
            f"{config}: no conf.py in it; name the folder that holds it with --config"
        )
    try:
        config_read = Config.read(config, overrides={}, tags=Tags())
    except SphinxError as error:
        raise _mistake(config / "conf.py", error.__cause__ or error) from None
    check_names([*config_read._raw_config, *overrides])
    _check_myst_nb(config_read._raw_config)

    def get(name: str) -> Any:
        if name in overrides:
            return from_text(name, overrides[name])
        if name not in config_read:
            config_read.add(name, None, "", ())
        return config_read[name]

    # A book whose pages lie in the folder of the project keeps its runs there as well.
    project = source if source == Path.cwd() else source.parent
    cache = project / "_build" / "cache"
    return settings_of(get, source, config, cache, **more)


def _check_myst_nb(options: Mapping[str, Any]) -> None:
    """Refuse what MyST-NB would refuse once all pages have run."""
    from myst_nb.core.config import NbParserConfig

    names = {field.name for field in dataclasses.fields(NbParserConfig)}
    given = {n[3:]: value for n, value in options.items() if n.startswith("nb_")}
    try:
        NbParserConfig(**{n: given[n] for n in names & given.keys()})
    except (TypeError, ValueError) as error:
        what = f"conf.py, in an option of MyST-NB: {error.args[0]}"
        raise BookError(f"{what}\n    → correct it, or take it out") from None


def _mistake(conf: Path, cause: BaseException) -> PageError:
    """What is wrong in a `conf.py`, and at which of its lines."""
    frames = traceback.extract_tb(cause.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == conf]
    line = (lines or [getattr(cause, "lineno", None)])[-1]
    way_out = "correct that line, or take it out"
    if isinstance(cause, ModuleNotFoundError):
        way_out = f"install what brings {cause.name}, or add its folder to sys.path"
    return PageError(conf, line or 1, f"{type(cause).__name__}: {cause}", way_out)
