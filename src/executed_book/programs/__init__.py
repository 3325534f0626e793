"""Each cell of a page as a program that runs alone.

A cell's way: `cells` makes plain Python of it, `effects` tells what each of its
statements reads and changes, `page` which earlier statements it depends on, `assembly`
writes the program. `downloads` makes a script and a notebook of the whole chapter, and
`snippets` hands all of these to the build.
"""

from .assembly import Program, Programs, header, program
from .cells import SourceCell
from .downloads import notebook, script
from .page import NoFaithfulProgram, Page

__all__ = [
    "NoFaithfulProgram",
    "Page",
    "Program",
    "Programs",
    "SourceCell",
    "header",
    "notebook",
    "program",
    "script",
]
