"""Measured numbers in running text come from a run, or the build fails."""

from pathlib import Path

import pytest

from executed_book.reading.markdown import running_text
from executed_book.reading.prose import check_prose


def found(text: str) -> list[tuple[int, str]]:
    return [
        (error.line, error.message.rsplit(": ", 1)[1])
        for error in check_prose(Path("page.md"), running_text(text))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "It is 3.2× faster.",
        "It took 12 ms.",
        "It took 12ms.",
        "About 40 µs a call",
        "ran in 0.5 s, then stopped",
        "uses 16.5 MB",
        "moves 4.3 TB/s",
        "is 5 times slower",
        "was 20 % faster",
        "a 10-fold gain",
        "between 40-50 seconds",
    ],
)
def test_a_bare_measured_number_is_found(text):
    assert len(found(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It is at least five times faster.",
        "It is {measured}`ratio:.1f` times faster.",
        "It took {measured}`1e3 * t:.1f` ms.",
        "The call `sleep(12) s` waits.",
        "Split into 3 keys, 32 bits each, of shape 10x10.",
        "$12 s + 3$",
        "Python 3.13 supports this; chapter 4 says more.",
        "[a talk](https://example.org/12 ms)",
        "On 1000 points the curves agree.",
    ],
)
def test_other_numbers_are_left_alone(text):
    assert found(text) == []


def test_code_is_not_prose_but_admonitions_are():
    text = """\
---
title: 12 ms
---

```{code-cell}
x = "12 ms"
```

:::{note}
It took 13 ms.

```python
y = "14 ms"
```

It took 15 ms.
:::

It took 16 ms.
"""
    assert found(text) == [(10, "'13 ms'"), (16, "'15 ms'"), (19, "'16 ms'")]
