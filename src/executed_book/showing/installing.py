"""What has to be installed to run a page: on the page, in programs, in its notebook.

What a book's configuration names is a requirement as pip takes it, or a file of the
site, such as a wheel below `_downloads`. The site's files have its address. A site that
was not told its address shows the name of the file, and a script completes it in the
browser.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole
from sphinx.util.osutil import relative_uri
from sphinx.writers.html5 import HTML5Translator

from .transforms import cells_of, part_of

#: The folder of a site with files to take along.
DOWNLOADS = "_downloads/"


@dataclass(frozen=True)
class Installing:
    """What a book's pages need, as its configuration says.

    Attributes:
        always: requirements that each notebook installs. The first is what the book is
            about: code that needs nothing else does not name it.
        also: the requirement of a module that a page may import, by the module's name.
        site: the address of the site; empty if it is not known.

    >>> also = {"jax": "jax", "sklearn": "scikit-learn", "own": "_downloads/own-1.whl"}
    >>> here = Installing(("jax==0.12", "matplotlib"), also, "https://a.book")
    >>> here.needed_by("import jax\\nfrom sklearn import svm")
    ['jax', 'scikit-learn']
    >>> here.needed_by("import jax"), here.needed_by("import own.b")
    ([], ['_downloads/own-1.whl'])
    >>> here.command(["jax", "_downloads/own-1.whl"])
    'pip install jax https://a.book/_downloads/own-1.whl'
    """

    always: tuple[str, ...] = ()
    also: Mapping[str, str] | None = None
    site: str = ""

    def needed_by(self, code: str) -> list[str]:
        """The requirements of what some code imports."""
        also = self.also or {}
        needed = [also[module] for module in also if _imports(code, module)]
        known = {distribution(name) for name in self.always[:1]}
        others = any(distribution(name) not in known for name in needed)
        return list(dict.fromkeys(needed)) if others else []

    def of_notebook(self, code: str) -> list[str]:
        """The requirements of a notebook."""
        by_name = {distribution(name): name for name in self.always}
        for name in self.needed_by(code):
            by_name.setdefault(distribution(name), name)
        return list(by_name.values())

    def named(self, requirement: str) -> str:
        """A requirement with the site's address, or as a file beside the reader's."""
        if not requirement.startswith(DOWNLOADS):
            return requirement
        if self.site:
            return f"{self.site.rstrip('/')}/{requirement}"
        return posixpath.basename(requirement)

    def command(self, requirements: Iterable[str]) -> str:
        """The command that installs the requirements."""
        return "pip install " + shlex.join(map(self.named, requirements))

    def headed(self, program: str) -> str:
        """A program that says in its second line what it needs, if that is much.

        The first line says where the program comes from.
        """
        needed = self.needed_by(program)
        if not needed:
            return program
        first, _, rest = program.partition("\n")
        return f"{first}\n# {self.command(needed)}\n{rest}"


def distribution(requirement: str) -> str:
    """What is installed by a requirement.

    >>> distribution("jax==0.12"), distribution("_downloads/own_one-1.0-py3.whl")
    ('jax', 'own_one')
    >>> distribution("scikit-learn"), distribution("a[b] @ git+https://c.d")
    ('scikit-learn', 'a')
    """
    if requirement.startswith(DOWNLOADS):
        return posixpath.basename(requirement).partition("-")[0]
    return re.split(r"[\s\[=<>!~;@]", requirement, maxsplit=1)[0]


def _imports(code: str, module: str) -> bool:
    """Whether some code imports a module, or uses it as a part of another."""
    name = re.escape(module)
    ways = [rf"^\s*(?:import|from) {name}\b"]
    parent, _, own = module.rpartition(".")
    if parent:
        ways.append(rf"^\s*from {re.escape(parent)} import [^\n]*\b{own}\b")
        ways.append(rf"\b{name}\.")
    return re.search("|".join(ways), code, re.MULTILINE) is not None


# -- the first cell of a notebook

_FIRST = """\
# Installs what this notebook needs, each thing by itself. Run this cell first.
import importlib.metadata, importlib.util, os, subprocess, sys

def install(**needs):
    pip = [sys.executable, "-m", "pip", "install", "-q"]
    if importlib.util.find_spec("pip") is None:  # an environment that uv has made
        pip = ["uv", "pip", "install", "-q", "--python", sys.executable]
    for name, requirement in needs.items():
        name = name.replace("_", "-")
        try:
            here = f"{name}=={importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            here = None
        if here is None or ("==" in requirement and here != requirement):
            try:
                subprocess.run(
                    [*pip, requirement], check=True, capture_output=True, text=True
                )
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"NOT INSTALLED: {requirement}. What needs it will fail.")
                print(getattr(error, "stderr", error))

install(
"""


def first_cell(
    installing: Installing, code: str, environ: Mapping[str, str | None]
) -> str:
    """The code of a notebook's first cell.

    Args:
        installing: what the book's pages need.
        code: the code of the notebook's other cells.
        environ: environment variables that are set before anything is imported, or
            removed (None): with them the notebook gives what the page shows.
    """
    lines = []
    for one in installing.of_notebook(code):
        source = installing.named(one)
        beside = one.startswith(DOWNLOADS) and not installing.site
        source = f"./{source}" if beside else source
        hint = "  # put this file beside the notebook" if beside else ""
        name = distribution(one).replace("-", "_")
        lines.append(f"    {name}={json.dumps(source)},{hint}")
    setting = [
        f"os.environ.pop({json.dumps(name)}, None)"
        if value is None
        else f"os.environ[{json.dumps(name)}] = {json.dumps(value)}"
        for name, value in environ.items()
    ]
    if setting:
        setting.insert(
            0, "\n# Print without colors, as on the page: some checks compare it."
        )
    return "\n".join([_FIRST.rstrip("\n"), *lines, ")", *setting])


# -- on the page


class install_command(nodes.literal):  # docutils names nodes so
    """The command that installs what a page needs."""


def _node(installing: Installing, requirements: list[str]) -> install_command:
    text = installing.command(requirements)
    made = install_command(text, text, classes=["install"])
    made["files"] = [
        one for one in requirements if one.startswith(DOWNLOADS) and not installing.site
    ]
    return made


def visit_install(translator: HTML5Translator, node: install_command) -> None:
    """Write the command with a link to each file of the site that it names."""
    builder: Any = translator.builder
    text = translator.encode(node.astext())
    for file in node["files"] if builder.name != "epub" else ():
        page = builder.get_target_uri(builder.current_docname)
        address = translator.attval(relative_uri(page, file))
        name = posixpath.basename(file)
        text = text.replace(name, f'<a href="{address}" download>{name}</a>')
    translator.body.append(f'<code class="install">{text}</code>')
    raise nodes.SkipNode


class InstallRole(SphinxRole):
    """A command that installs what is listed: ``{install}`jax own` ``.

    The name of a module that the book's configuration has a requirement for stands for
    that requirement.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        installing = installing_of(self.config)
        also = installing.also or {}
        wanted = [also.get(name, name) for name in shlex.split(self.text)]
        return [_node(installing, wanted)], []


def add_note(installing: Installing, code: str, document: nodes.document) -> None:
    """Say on a page what it needs, below the first cell that imports such a thing.

    A page that says it in its text, by the role, says it once.

    Args:
        installing: what the book's pages need.
        code: the code of the page.
        document: the page.
    """
    needed = installing.needed_by(code)
    unusual = {distribution(one) for one in installing.always}
    if all(distribution(one) in unusual for one in needed):
        return
    if any(document.findall(install_command)):
        return
    line = nodes.paragraph("", "To run this page: ")
    line += _node(installing, needed)
    note = nodes.container("", line, classes=["install-note", "no-search"])
    for cell in cells_of(document):
        source = part_of(cell, "source")
        found = installing.needed_by(source.astext()) if source is not None else []
        if any(distribution(one) not in unusual for one in found):
            assert cell.parent is not None
            cell.parent.insert(cell.parent.index(cell) + 1, note)
            return
    sections = [n for n in document.children if isinstance(n, nodes.section)]
    (sections[-1] if sections else document).append(note)


def installing_of(config: Any) -> Installing:
    """What a book's pages need, as Sphinx's configuration says."""
    return Installing(
        tuple(config.executed_book_install or ()),
        config.executed_book_install_also or {},
        str(config.html_baseurl or ""),
    )


def setup_installing(app: Sphinx) -> None:
    """Let pages say what they need, and in the browser with the site's own address."""
    app.add_role("install", InstallRole())
    app.add_node(install_command, html=(visit_install, None))
    app.add_css_file("install.css")
    app.add_js_file("install.js", loading_method="defer")
