"""A Whirlwind Tour of Python, which has no conf.py: notebooks with cells that fail."""

extensions = ["myst_nb"]
include_patterns = ["*.ipynb"]
exclude_patterns = ["_build", "website"]
root_doc = "Index"
suppress_warnings = ["myst.header", "myst.xref_missing", "toc.not_included"]
nb_execution_allow_errors = True
nb_execution_timeout = 900
