"""Where and when something ran, in words; `test_page` looks at a whole stamp."""

import dataclasses

import pytest

from executed_book.showing.stamp import devices, where

from ..made import CPU, GPU


def test_a_record_says_all_that_is_known_of_where_it_was_made():
    versions = "driver 570.1, JAX 0.12.0, Python 3.12.3, 2001-02-03"
    assert where(GPU) == f"Recorded on 1 × NVIDIA H200, {versions}"
    assert where(CPU) == "Recorded on 1 × cpu, JAX 0.12.0, Python 3.13.1"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"device_count": 8}, "8 × cpu"),
        ({"platform": "gpu", "device_kind": "NVIDIA H200"}, "gpu: NVIDIA H200"),
        ({"platform": "tpu", "device_kind": "TPU"}, "TPU"),
    ],
)
def test_devices_in_words(fields, words):
    assert devices(dataclasses.replace(CPU, **fields)) == words
