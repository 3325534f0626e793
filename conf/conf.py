"""Configuration of the book; built as ``sphinx-build -c conf docs _build/html``."""

import os
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE))


def version_of(project: Path) -> str:
    """The version that a `pyproject.toml` has."""
    return str(tomllib.loads(project.read_text("utf-8"))["project"]["version"])


REPOSITORY = os.environ.get("BOOK_REPOSITORY_URL", "")

project = "Just After Execution"
author = "the contributors"
copyright = "the contributors. Text and code under the Apache License 2.0"

executed_book_asks = "Predict"  # then the output stays folded until one has
extensions = [
    "myst_nb",
    "executed_book",
    "card",
    "drawings",
    "editions",
    "finding",
    "assets",
    "mathml",
    "moved",
    "names",
    "pages",
    "parts",
    "references",
    "archive",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
exclude_patterns = ["_build"]
executed_book_bound = ["**"]  # one star does not reach into folders
executed_book_cache = "../_build/cache"
executed_book_claims = {
    "under": ["What to remember"],
    "after": ["Cause.", "Fix."],
    "asking": ["Exercises"],
}
executed_book_figures = "themed"
# Colab opens what lies in a repository: owner/name/blob/branch, with a notebook a page.
NOTEBOOKS = os.environ.get("BOOK_NOTEBOOKS", "")
executed_book_colab = (
    f"https://colab.research.google.com/github/{NOTEBOOKS}" if NOTEBOOKS else ""
)
# What pages import and is in no package index is offered by the site itself.
PROJECTS = {
    "justafter": HERE.parent,
    "executed_book": HERE.parent / "src/executed_book",
}
archive_wheels = {
    f"{name}-{version_of(project / 'pyproject.toml')}-py3-none-any.whl": str(project)
    for name, project in PROJECTS.items()
}
executed_book_install = [f"jax=={metadata.version('jax')}", "matplotlib"]
executed_book_install_also = {
    "jax": "jax",
    "blackjax": "blackjax",
    "diffrax": "diffrax",
    "equinox": "equinox",
    "flax": "flax",
    "grain": "grain",
    "jax.export": "flatbuffers",  # what it writes
    "lineax": "lineax",
    "matplotlib": "matplotlib",
    "numpyro": "numpyro",
    "optax": "optax",
    "optimistix": "optimistix",
    "orbax": "orbax-checkpoint",
    "PIL": "pillow",
    "rich": "rich",
    "sklearn": "scikit-learn",
    "tokenizers": "tokenizers",
} | {name.partition("-")[0]: f"_downloads/{name}" for name in archive_wheels}
# JAX and Python print in color under Jupyter, and some checks read what they print.
executed_book_install_environ = {
    "FORCE_COLOR": None,
    "CLICOLOR_FORCE": None,
    "JAX_PPRINT_USE_COLOR": "0",
    "PYTHON_COLORS": "0",
}
executed_book_outputs = "../outputs/cells"
executed_book_programs = "../outputs/programs"
executed_book_rules = "all"
nitpicky = True
# Types in signatures belong to JAX and Python, whose pages are not part of this site.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_typehints_format = "short"
napoleon_use_ivar = True
highlight_language = "python3"

# A message of JAX's in a traceback need not be Python: it is shown all the same.
suppress_warnings = ["misc.highlighting_failure"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_in_temp = True  # so that a chapter needs nothing but what it says
nb_code_prompt_show = "Show the {type}"
nb_code_prompt_hide = "Hide the {type}"

templates_path = [str(HERE / "templates")]
html_static_path = [str(HERE / "static")]
editions = bool(os.environ.get("BOOK_EDITIONS"))
archive_name = "just-after-execution"
html_baseurl = os.environ.get("BOOK_URL", "")
card_lines = (
    "JAX for people who know NumPy:",
    "what will happen, what came out, and why.",
)
pages_changes = "../CHANGELOG.md"
html_additional_pages = {"404": "404.html", "search": "search.html"}
html_context = {
    "book_url": os.environ.get("BOOK_URL", ""),
    "default_mode": "auto",
    "jax_version": metadata.version("jax"),
}
html_css_files = [
    "colors.css",
    "icons.css",
    "text.css",
    "frame.css",
    "code.css",
    "drawings.css",
    "landing.css",
    "search.css",
    "print.css",
]
html_favicon = str(HERE / "static" / "favicon.svg")
html_js_files = ["book.js", "search.js"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_sidebars = {"**": ["sbt-sidebar-nav.html"]}
html_theme = "sphinx_book_theme"
html_title = project
html_theme_options = {
    "back_to_top_button": False,
    "footer_content_items": ["copyright.html"],
    "article_header_end": [],
    "article_header_start": [],
    "collapse_navbar": True,
    "navbar_end": ["article-header-buttons.html"],
    "navbar_persistent": ["search-button-field.html", "pages-link.html"],
    "navbar_start": ["site-name.html"],
    "path_to_docs": "docs",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "pygments_light_style": "a11y-high-contrast-light",
    "repository_branch": os.environ.get("BOOK_REPOSITORY_BRANCH", "main"),
    "repository_url": REPOSITORY,
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "toc_title": "On this page",
    "use_edit_page_button": bool(REPOSITORY),
    "use_fullscreen_button": False,
    "use_issues_button": bool(REPOSITORY),
    "use_repository_button": bool(REPOSITORY),
}

epub_author = author
epub_description = "JAX for people who know NumPy, with every output executed."
epub_identifier = epub_uid = archive_name
epub_publisher = author
epub_scheme = "ID"
epub_basename = archive_name
epub_copyright = copyright
epub_css_files = ["book.css"]
epub_show_urls = "no"
epub_tocdepth = 2
if "tags" in globals() and tags.has("epub"):  # noqa: F821 (Sphinx gives it)
    # A book without scripts, which its reader's device lays out.
    of_sites = {"finding", "assets", "moved", "archive"}
    extensions = [name for name in extensions if name not in of_sites]
    templates_path = []
    html_static_path = [str(HERE / "epub")]
    html_css_files = html_js_files = []
    html_additional_pages = {}
    # Notebooks and texts to take along are no part of it.
    suppress_warnings += ["epub.unknown_project_files"]
    version = metadata.version("jax")


def setup(app):
    # After napoleon, which names types by the modules that they are defined in.
    app.connect("autodoc-process-docstring", name_types_as_imported, priority=600)


def name_types_as_imported(app, what, name, obj, options, lines):
    lines[:] = [re.sub(r"\bjustafter\._[\w.]+\.(?=[A-Z])", "", line) for line in lines]
