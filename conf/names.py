"""The page that says where each public name of JAX and its libraries runs.

What a cell uses is resolved as it is for the links in code: by the imports of its page
and the lists of what each library documents. The uses of a page are taken when the page
is read and kept with Sphinx's environment. When all pages have been read, the page with
the directive `names` is read again, if what it would say has changed.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any, NamedTuple

from docutils import nodes
from references import inventory, names_of, parsed, used_names
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

#: The packages whose names are listed: JAX, and what is built on it.
PACKAGES = (
    "jax", "flax", "optax", "equinox",
    "diffrax", "optimistix", "lineax", "numpyro", "blackjax",
)  # fmt: skip

#: Of a name that more sections use only one is shown: where it is taught, or the first.
MOST = 10

_USES, _SHOWN = "names_uses", "names_shown"


class Use(NamedTuple):
    """A name in one section of a page, and how many of its cells use it."""

    name: str
    page: str
    anchor: str
    section: str
    cells: int


def uses_of(doctree: nodes.document, page: str) -> list[Use]:
    """What the cells of a page use, section by section."""
    blocks = [
        block
        for source in doctree.findall(nodes.container)
        if source.get("nb_element") == "cell_code_source"
        for block in source.findall(nodes.literal_block)
    ]
    trees = [(block, parsed(block.astext())) for block in blocks]
    meant = names_of([tree for _, tree in trees if tree is not None])
    found: Counter[tuple[str, str, str]] = Counter()
    for block, tree in trees:
        full = {name for _, name in used_names(tree, meant)} if tree else ()
        found.update((name, *_section(block)) for name in full if _is_listed(name))
    return [Use(name, page, *place, n) for (name, *place), n in found.items()]


def _is_listed(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def _section(node: nodes.Node) -> tuple[str, str]:
    """The anchor and the title of the section that contains a node."""
    while node is not None and not isinstance(node, nodes.section):
        node = node.parent
    title = node.next_node(nodes.title) if node is not None else None
    if node is None or title is None or isinstance(node.parent, nodes.document):
        return "", ""
    return node["ids"][0], title.astext()


def reading_order(env: BuildEnvironment) -> dict[str, int]:
    """Each page's place in the table of contents; those outside come last."""
    order: dict[str, int] = {}

    def visit(page: str) -> None:
        if page not in order:
            order[page] = len(order)
            for below in env.toctree_includes.get(page, ()):
                visit(below)

    for page in (env.config.root_doc, *sorted(env.found_docs)):
        visit(page)
    return order


def all_uses(env: BuildEnvironment) -> list[Use]:
    """The uses of all pages, by name, and then as one reads."""
    order = reading_order(env)
    kept: dict[str, list[Use]] = getattr(env, _USES, {})
    uses = [use for page in sorted(kept) for use in kept[page]]
    # Within a page they lie in the order of its sections already.
    return sorted(uses, key=lambda use: (*_sorted_as(use.name), order[use.page]))


def _sorted_as(name: str) -> tuple[int, str, str, str]:
    package = PACKAGES.index(name.partition(".")[0])
    return package, _module(name), name.casefold(), name


def _module(name: str) -> str:
    """The longest module that a name is in: a class keeps its methods."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 1, -1):
        target = inventory().get(".".join(parts[:end]))
        if target is None or target.is_module:
            return ".".join(parts[:end])
    return parts[0]


def taught_names(env: BuildEnvironment, uses: list[Use]) -> dict[str, tuple[str, str]]:
    """The names that a page goes by or that the index has: the page, and its place."""
    entries = env.domaindata["index"]["entries"]
    order = reading_order(env)
    read = [page for page in order if page in env.titles]
    pages = {page.rpartition("/")[2]: (page, "") for page in reversed(read)}
    terms: dict[str, tuple[str, str]] = {}
    for page in sorted(entries, key=order.__getitem__):
        for _, value, anchor, *_ in entries[page]:
            for term in value.split(";"):
                terms.setdefault(term.strip(), (page, anchor))
    found = {}
    for name in {use.name for use in uses}:
        short = name.removeprefix("jax."), name.removeprefix("jax.lax.")
        said = [name, *short, name.replace("jax.numpy.", "jnp.")]
        known = [
            places[each] for places in (pages, terms) for each in said if each in places
        ]
        if known:
            found[name] = known[0]
    return found


# -- the page


class NamesDirective(SphinxDirective):
    """A section for each module, with the names in it and where each runs."""

    def run(self) -> list[nodes.Node]:
        uses = all_uses(self.env)
        self.taught = taught_names(self.env, uses)
        shown = getattr(self.env, _SHOWN, {})
        shown[self.env.docname] = _told(self.env, uses)
        setattr(self.env, _SHOWN, shown)
        modules = groupby(uses, key=lambda use: _module(use.name))
        return [self._of_module(module, list(group)) for module, group in modules]

    def _of_module(self, module: str, uses: list[Use]) -> nodes.section:
        section = nodes.section(ids=[f"module-{module}"], names=[module])
        section += nodes.title("", "", nodes.literal("", module))
        names = nodes.definition_list(classes=["where-names-run"])
        for name, group in groupby(uses, key=lambda use: use.name):
            names += self._of_name(name, list(group))
        section += names
        return section

    def _of_name(self, name: str, uses: list[Use]) -> nodes.definition_list_item:
        address = inventory()[name].address
        link = nodes.reference("", "", refuri=address, internal=False)
        link += nodes.literal("", name)
        term = nodes.term("", "", link, ids=[name])
        told = nodes.paragraph("", _summary(uses))
        told += nodes.inline("", "", *self._places(name, uses), classes=["no-search"])
        return nodes.definition_list_item("", term, nodes.definition("", told))

    def _places(self, name: str, uses: list[Use]) -> list[nodes.Node]:
        """Where a name is taught, and the sections that use it; of many the first."""
        places: list[nodes.Node] = []
        if name in self.taught:
            page, anchor = self.taught[name]
            places += [
                nodes.Text(". Taught in "),
                _link(page, anchor, self._title(page)),
            ]
        if len(uses) <= MOST:
            links = [self._use(use) for use in uses]
            places += [nodes.Text(". In "), links[0]]
            for link in links[1:]:
                places += [nodes.Text("; "), link]
        elif name not in self.taught:
            places += [nodes.Text(". First in "), self._use(uses[0])]
        return [*places, nodes.Text(".")]

    def _use(self, use: Use) -> nodes.reference:
        title = self._title(use.page)
        text = f"{title}, {use.section}" if use.section else title
        return _link(use.page, use.anchor, text)

    def _title(self, page: str) -> str:
        return self.env.titles[page].astext()


def _link(page: str, anchor: str, text: str) -> nodes.reference:
    return nodes.reference("", text, internal=True, place=(page, anchor))


def _summary(uses: list[Use]) -> str:
    pages = len({use.page for use in uses})
    where = f" on {pages} pages" if pages > 1 else ""
    return f"{_cells(sum(use.cells for use in uses))}{where}"


def _cells(count: int) -> str:
    return f"{count} cell{'' if count == 1 else 's'}"


def _told(env: BuildEnvironment, uses: list[Use]) -> list[tuple[str, ...]]:
    """All that the page is made from."""
    taught = taught_names(env, uses)
    return [
        (*map(str, use), env.titles[use.page].astext(), *taught.get(use.name, ()))
        for use in uses
    ]


def lead(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give each link to a place its address, as it is in this form of the book."""
    for link in doctree.findall(nodes.reference):
        if "place" in link:
            page, anchor = link["place"]
            address = app.builder.get_relative_uri(docname, page)
            link["refuri"] = f"{address}#{anchor}" if anchor else address


# -- when


def _note(app: Sphinx, doctree: nodes.document) -> None:
    page = app.env.current_document.docname
    kept = getattr(app.env, _USES, {})
    kept[page] = uses_of(doctree, page)
    setattr(app.env, _USES, kept)


def _purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    for attribute in (_USES, _SHOWN):
        getattr(env, attribute, {}).pop(docname, None)


def _merge(
    app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment
) -> None:
    for attribute in (_USES, _SHOWN):
        theirs = getattr(other, attribute, {})
        ours = getattr(env, attribute, {})
        ours.update({name: theirs[name] for name in docnames if name in theirs})
        setattr(env, attribute, ours)


def _read_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages that list names, read anew if other pages have changed their uses."""
    told = _told(env, all_uses(env))
    shown: dict[str, Any] = getattr(env, _SHOWN, {})
    changed = sorted(page for page in shown if shown[page] != told)
    for page in changed:
        app.emit("env-purge-doc", env, page)
        env.clear_doc(page)
        app.builder.read_doc(page)
    return changed


def setup(app: Sphinx) -> dict[str, Any]:
    """Take the uses of each page, and list them where a page asks for that."""
    app.add_directive("names", NamesDirective)
    app.connect("doctree-read", _note)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    app.connect("doctree-resolved", lead)
    # Before what is made from the tables of contents of all pages.
    app.connect("env-updated", _read_again, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
