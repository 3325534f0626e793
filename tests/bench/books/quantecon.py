"""QuantEcon's JAX lectures, configured by Jupyter Book from their `_config.yml`.

Jupyter Book wants its `conf.py` in the folder with the pages.
"""

from pathlib import Path

from jupyter_book.config import get_final_config

here = Path(__file__).parent
whole, _ = get_final_config(
    user_yaml=here / "_config.yml",
    sourcedir=here,
    cli_config={"latex_individualpages": False},
)
globals().update(whole, external_toc_path="_toc.yml")
del here, whole, get_final_config, _
