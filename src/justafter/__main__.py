"""Compare two files of measurements: `python -m justafter then.json now.json`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how each function's time changed; 1 if one is slower, 2 on bad input."""
    parser = argparse.ArgumentParser(prog="python -m justafter", description=__doc__)
    parser.add_argument("then", help="a file that measure.save wrote")
    parser.add_argument("now", help="a later one")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.05,
        help="a ratio this close to 1 is no change (0.05)",
    )
    options = parser.parse_args(arguments)
    from ._measure import measure
    from ._measure._saved import changes
    from ._measure._show import changes_as_text

    try:
        then, now = measure.load(options.then), measure.load(options.now)
        found = changes(then, now.values(), options.tolerance)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if not found:
        print(
            f"no function is in both {options.then} and {options.now}", file=sys.stderr
        )
        return 2
    print(changes_as_text(found))
    for name in sorted(then.keys() ^ now.keys()):
        print(f"only {'then' if name in then else 'now'}: {name}")
    return int(any(one.verdict == "slower" for one in found))


if __name__ == "__main__":
    sys.exit(main())
