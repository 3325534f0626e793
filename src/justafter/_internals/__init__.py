"""The one place that touches JAX's internals.

Everything here is tested on the oldest and the newest supported JAX. What `lens` and
`watch` need is checked before it is used, and the error says which JAX has moved it.
"""

from __future__ import annotations

from pathlib import Path

from jax._src import source_info_util as _source_info
from jax._src import traceback_util as _traceback_util

# Our frames are in the user's calls while we pass them on. An error shows the
# user's frames and not ours; so does the place that JAX remembers of an operation.
for _file in sorted(Path(__file__).parent.glob("*.py")):
    _traceback_util.register_exclusion(str(_file))
    _source_info.register_exclusion(str(_file))
