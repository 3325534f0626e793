"""The BlackJAX sampling book, which has no conf.py: its Markdown and bibliography."""

extensions = ["myst_nb", "sphinxcontrib.bibtex"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
bibtex_bibfiles = ["references.bib"]
suppress_warnings = [
    "bibtex.duplicate_citation",
    "myst.directive_unknown",
    "toc.not_included",
]
nb_execution_timeout = 900
