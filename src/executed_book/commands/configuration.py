"""What Sphinx's configuration says that is needed before Sphinx runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphinx.config import Config
from sphinx.errors import SphinxError
from sphinx.util.tags import Tags

from ..errors import BookError
from ..settings import Settings, from_text, settings_of


def read_settings(
    config: Path, source: Path, overrides: Mapping[str, str], **more: Any
) -> Settings:
    """The settings of the book whose `conf.py` is in the folder `config`.

    `overrides` are options given on the command line; `more` are settings.

    Raises:
        BookError: there is no `conf.py`, or it cannot be read, or an option in it has
            a value that it may not have.
    """
    if not (config / "conf.py").is_file():
        raise BookError(
            f"{config}: no conf.py in it; name the folder that holds it with --config"
        )
    try:
        config_read = Config.read(config, overrides={}, tags=Tags())
    except SphinxError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise BookError(f"{config / 'conf.py'}: {lines[0]} {lines[-1]}") from None

    def get(name: str) -> Any:
        if name in overrides:
            return from_text(name, overrides[name])
        if name not in config_read:
            config_read.add(name, None, "", ())
        return config_read[name]

    cache = source.parent / "_build" / "cache"
    return settings_of(get, source, config, cache, **more)
