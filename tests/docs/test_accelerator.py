"""The pages' branches for other devices run, on a simulated one.

So that a slip in one of them is not found on a GPU's time. What a real device gives is
in the records; here its library calls count no FLOPs, its compiler makes more kernels
and keeps less between them, and its runtime logs.
"""

import re
import shutil

import pytest

from ..book.conftest import TinyBook, ended, on_a_device
from .conftest import DOCS, ROOT, chapters

pytestmark = pytest.mark.weekly

#: Chapters that the simulation cannot run: what they compile or lower is for the real
#: platform, which here is still the CPU.
NOT_SIMULATED = {"devices/pallas", "tracing/ahead-of-time"}

#: Sizes that are made for a fast device, with those that do here.
SIZES = {"devices/performance": (("2**27", "2**20"), ("else 8192", "else 512"))}

DEVICE = {
    "flops": -1,
    "kernels": 2,
    "temporaries": 0.1,
    "stderr": (
        "2025-05-18 21:59:55.086788: W external/xla/xla/tsl/framework/"
        "bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory\n"
    ),
}

_BRANCH = re.compile(r'default_backend\(\) [!=]= "cpu"')

_ROW = re.compile(r"^([\w/-]+): (\d+) cells? recorded.* (\d+) failed$", re.MULTILINE)


def branching():
    return sorted(
        chapter.docname
        for chapter in chapters()
        if _BRANCH.search(chapter.text) and chapter.platform is None
    )


def smaller_pages(folder):
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(DOCS, folder / "docs")
    for docname, sizes in SIZES.items():
        path = folder / "docs" / f"{docname}.md"
        text = path.read_text("utf-8")
        for large, small in sizes:
            assert large in text, f"{docname} no longer says {large}"
            text = text.replace(large, small)
        path.write_text(text, "utf-8")
    return folder / "docs"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accelerator")
    options = ("record", "--source", str(smaller_pages(folder)))
    places = [f"-Dexecuted_book_{n}={folder / n}" for n in ("cache", "outputs")]
    only = ("--only", *(set(branching()) - NOT_SIMULATED))
    book, device = TinyBook(ROOT), on_a_device(**DEVICE)
    return ended(book.start(*options, *places, *only, **device))


def test_what_is_not_simulated_is_a_chapter_that_branches():
    assert set(branching()) >= NOT_SIMULATED


def test_every_branch_for_another_device_runs(recording):
    status, output = recording
    assert status == 0, output
    rows = {name: (int(good), int(bad)) for name, good, bad in _ROW.findall(output)}
    assert rows.keys() == set(branching()) - NOT_SIMULATED
    assert all(good and not bad for good, bad in rows.values()), output
