"""Which pages are to be read anew: those whose files have another content.

Sphinx goes by time stamps, which copying, unpacking and a clock set back can all make
older than what was built. Content is what counts here.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.environment import BuildEnvironment

from ..running.fingerprint import file_digest

_ATTRIBUTE = "executed_book_contents"

#: A page's files, each with the digest of its content.
Contents = dict[str, str | None]


def changed_pages(env: BuildEnvironment) -> set[str]:
    """The pages whose files are others than when they were last read."""
    contents: dict[str, Contents] = getattr(env, _ATTRIBUTE, {})
    return {
        docname
        for docname in env.found_docs & contents.keys()
        if _contents(env, docname, contents[docname]) != contents[docname]
    }


def note_contents(env: BuildEnvironment) -> None:
    """Remember what all pages were made from, once they have been read."""
    noted = {docname: _contents(env, docname) for docname in env.found_docs}
    setattr(env, _ATTRIBUTE, noted)


def _contents(
    env: BuildEnvironment, docname: str, files: Contents | None = None
) -> Contents:
    """The content of a page's own file, and of the files that it includes or shows."""
    if files is None:
        files = dict.fromkeys(map(str, env.dependencies.get(docname, ())))
    source = Path(env.srcdir)
    names = {name for name in files if name}
    digests = {name: file_digest(source / name) for name in sorted(names)}
    own = str(env.doc2path(docname, base=False))
    digests[own] = file_digest(source / own)
    return digests
