"""What surrounds a build leaves pages unchanged, or the build says so in one line."""

import os
import re
import shutil
from pathlib import Path

import pytest

import executed_book

from .conftest import FRONT, PYTHON, TinyBook, copy_of, ended, new_book


def shown(book: TinyBook, name: str) -> str:
    return re.sub(r"<[^>]*>", "", book.html(name)).replace("&#39;", "'")


def test_a_flag_that_xla_does_not_know_is_one_line(book):
    book.chapter("one", "import jax\njax.devices()")
    book.chapter("two", "import jax\njax.devices()")
    said = book.refused("execute", XLA_FLAGS="--xla_no_such_flag=1")
    assert "JAX does not start on the platform 'cpu'" in said
    assert "xla_no_such_flag" in said
    assert "→ correct or unset these variables: " in said
    assert "cell" not in said, "no cell is blamed"
    assert "Traceback" not in said


X64 = "import jax.numpy as jnp\nprint(jnp.ones(1).dtype)"


WAYS = {
    "assigned": "import os\nos.environ['JAX_ENABLE_X64'] = '1'",
    "updated": "import os\nos.environ.update(JAX_ENABLE_X64='1')",
    "made": "import os\nos.environ['_'.join(['JAX', 'ENABLE', 'X64'])] = '1'",
    "late": "import jax\nimport os\nos.environ['JAX_ENABLE_X64'] = '1'",
    "not": "pass",
}


def test_what_jax_reads_when_imported_may_be_set_by_a_cell_before(book):
    book.index(*WAYS)
    for name, how in WAYS.items():
        book.chapter(name, how, X64)
    book.built()
    wide = [name for name in WAYS if "float64" in shown(book, name)]
    assert wide == ["assigned", "updated", "made"]


def test_a_file_beside_the_build_is_not_taken_for_a_module(book):
    (book.root / "random.py").write_text("raise SystemExit('shadowed')")
    (book.root / "jax.py").write_text("raise SystemExit('shadowed')")
    book.chapter("one", "import jax\nimport random\nprint(random.random() < 1)")
    book.executed(PYTHONHASHSEED="0")  # not in a fork, where all has been imported


HANDLER = """

def setup(app):
    app.connect("source-read", change)

def change(app, docname, source):
    if docname == "one":
        source[0] = source[0].replace({old!r}, {new!r})
"""


def test_an_extension_may_change_the_text_of_a_page(book):
    book.index("one")
    book.chapter("one", "print(3)")
    book.add_text("one", "A name.")
    book.configure(HANDLER.format(old="A name", new="Another name"))
    book.built()
    for words in ("Another name", "3\n", "Executed"):
        assert words in shown(book, "one")
    book.configure(HANDLER.format(old="print(3)", new="print(4)"))
    book.add_text("one", "More text.")
    said = book.refused("build")
    assert "or have the extension that changes them (at 'source-read')" in said
    assert "Traceback" not in said


def test_values_stand_in_any_directive_and_not_in_code(book):
    book.index("one")
    book.page(
        "one",
        f"{FRONT}# One\n\n```{{code-cell}}\nx = 41\n```\n\n"
        "~~~{admonition} A title of {value}`x + 1`\n:class: tip\nAnd {value}`x +\n2`.\n"
        "~~~\n\n```{list-table}\n* - {value}`x + 3`\n  - {value}`x + 4`\n```\n\n"
        "| a |\n|---|\n| {value}`x + 5` |\n\n> {value}`x + 6`\n\n"
        "```{code-block} text\n{value}`print('never')`\n```\n\n"
        "Write `` {value}`told` `` for a value, ``{value}`told` `` as well.\n\n"
        "```{figure} missing.png\nA caption of {value}`x + 7`\n```\n\n"
        "First {value}`x`.\n\n```{code-cell}\nx = 99\n```\n\n"
        "Then {value}`x` in {measured}`x` s.\n",
    )
    (book.root / "docs" / "missing.png").write_bytes(b"")
    book.built()
    text = shown(book, "one")
    for number in range(42, 49):
        assert str(number) in text
    assert "First 41." in text
    assert "Then 99 in 99 s." in text
    assert '<span class="measured no-search">99</span>' in book.html("one")
    assert "{value}`print('never')`" in text
    assert text.count("{value}`told`") == 2


def test_a_checkout_that_may_not_be_written_is_one_line(book):
    book.chapter("one", "1")
    book.root.chmod(0o555)
    # The superuser may write everywhere, unless it gives that right away.
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    python = [*(drop if os.getuid() == 0 else []), *PYTHON]
    status, said = ended(book.start("build", python=python))
    book.root.chmod(0o755)
    assert status == 1, said
    assert re.search("I/O error: Permission denied .*_build", said)
    assert "Traceback" not in said


WITH_SMALL_FILES = """
import resource, signal, sys
from executed_book.commands.line import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
sys.exit(main(["build"]))
"""


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> TinyBook:
    book = new_book(tmp_path_factory.mktemp("built"))
    book.index("one")
    book.chapter("one", "print('small')")
    book.built()
    return book


@pytest.mark.parametrize("limit", [0, 10_000, 200_000])
def test_a_disk_that_is_full_at_any_point_is_one_line(built_once, tmp_path, limit):
    """A limit on file sizes makes the kernel refuse writes as a full disk does."""
    book = copy_of(built_once, tmp_path)
    before = book.html("one")
    book.chapter("one", "print('x' * 400_000)")
    program = WITH_SMALL_FILES.format(limit=limit)
    status, said = ended(book.start(python=(PYTHON[0], "-c", program)))
    assert status == 1, said
    assert re.search("File too large|No usable temporary directory", said)
    assert "Traceback" not in said
    assert book.html("one") == before
    left = {path.name for path in (book.root / "_build").iterdir()}
    assert left <= {"html", ".html-work", "cache"}
    book.built()


def test_a_page_that_imports_the_engine_runs_again_when_that_changes(book):
    source = Path(executed_book.__file__).parent
    package = shutil.copytree(source, book.root / "executed_book")
    book.chapter("one", "from executed_book.settings import PREFIX\nPREFIX")
    book.index("one")
    python = str(book.root)
    assert "0 unchanged, 1 to execute" in book.executed(PYTHONPATH=python)
    assert "1 unchanged, 0 to execute" in book.executed(PYTHONPATH=python)
    with (package / "settings.py").open("a") as file:
        file.write("# changed\n")
    assert "0 unchanged, 1 to execute" in book.executed(PYTHONPATH=python)
