"""NumPy's tutorials, which have no conf.py: the Markdown that they are written in."""

extensions = ["myst_nb"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
suppress_warnings = ["toc.not_included"]
nb_execution_timeout = 900
