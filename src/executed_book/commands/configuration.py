"""What Sphinx's configuration says that is needed before Sphinx runs."""

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphinx.config import Config
from sphinx.errors import SphinxError
from sphinx.util.tags import Tags

from ..errors import BookError, PageError
from ..settings import Settings, check_options, settings_of


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
    check_options(config_read._raw_config, overrides)

    def get(name: str) -> Any:
        if name in overrides:
            return overrides[name]
        if name not in config_read:
            config_read.add(name, None, "", ())
        return config_read[name]

    # A book whose pages lie in the folder of the project keeps its runs there as well.
    project = source if source == Path.cwd() else source.parent
    cache = project / "_build" / "cache"
    return settings_of(get, source, config, cache, **more)


def _mistake(conf: Path, cause: BaseException) -> PageError:
    """What is wrong in a `conf.py`, and at which of its lines."""
    frames = traceback.extract_tb(cause.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == conf]
    line = (lines or [getattr(cause, "lineno", None)])[-1]
    way_out = "correct that line, or take it out"
    if isinstance(cause, ModuleNotFoundError):
        way_out = (
            f"install the package with {cause.name}, or add its folder to sys.path"
        )
    return PageError(conf, line or 1, f"{type(cause).__name__}: {cause}", way_out)
