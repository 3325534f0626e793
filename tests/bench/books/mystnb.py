"""MyST-NB's documentation, with its `conf.py`: features of MyST-NB, one by one.

Left out are what needs a network, a kernel of another language, and Jupytext.
"""

from pathlib import Path

docs = Path(__file__).parents[1] / "docs"
text = (docs / "conf.py").read_text("utf-8")
exec(text.replace('subprocess.check_call(["coconut", "--jupyter"])', "pass"))
extensions.remove("sphinx.ext.intersphinx")  # noqa: F821
html_static_path = [str(docs / "_static")]
html_logo = html_favicon = None
nb_custom_formats = {}
exclude_patterns = ["computation/coconut-lang.md", "reference", "**.Rmd"]
suppress_warnings += ["myst.xref_missing", "toc.not_readable", "ref.*"]  # noqa: F821
del docs, text
