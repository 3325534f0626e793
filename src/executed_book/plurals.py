"""Numbers of things, in words."""


def counted(number: int, noun: str) -> str:
    """How many there are, with an s where that is not one.

    >>> counted(1, "cell"), counted(0, "cell"), counted(1200, "cell")
    ('1 cell', '0 cells', '1200 cells')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
