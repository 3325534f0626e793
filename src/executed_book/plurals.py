"""Numbers of things, in words."""

from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """How many there are, with an s where that is not one.

    >>> counted(1, "cell"), counted(0, "cell"), counted(1200, "cell")
    ('1 cell', '0 cells', '1200 cells')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(numbers: Iterable[int]) -> str:
    """Numbers in order, three or more that follow each other as a range.

    >>> listed([9, 4, 5, 6, 7, 2, 1])
    '1, 2, 4–7, 9'
    """
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    texts = (
        [f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run) for run in parts
    )
    return ", ".join(text for some in texts for text in some)
