"""Each cell of a page as a program that runs alone.

A cell's way: `cells` makes plain Python of it, `following` tells what each of its
statements reads, binds and may change where it stands, `slicing` which earlier
statements a cell needs; `text` writes the program. `things` is what names may hold,
`libraries` what is known of libraries. `verify` runs the program, and `verdicts` keeps
what it gave. `snippets` hands all of these to the build.
"""
