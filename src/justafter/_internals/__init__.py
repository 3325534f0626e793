"""The one place that touches JAX's internals.

Everything here is tested on the oldest and the newest supported JAX. What `lens` and
`watch` need is checked before it is used, and the error says which JAX has moved it.
"""

from __future__ import annotations

from pathlib import Path

from jax._src import source_info_util as _source_info
from jax._src import traceback_util as _traceback_util

from ._events import JitCall as JitCall
from ._events import JitRun as JitRun
from ._events import Veto as Veto
from ._events import earlier_calls as earlier_calls
from ._events import is_called_by_reader as is_called_by_reader
from ._events import listen as listen
from ._events import listeners as listeners
from ._events import moved as moved
from ._events import unlisten as unlisten
from ._stages import estimate as estimate
from ._stages import is_tracing as is_tracing
from ._stages import jit_again as jit_again
from ._stages import loads as loads
from ._stages import without_persistent_cache as without_persistent_cache

# Our frames are in the user's calls while we pass them on. An error shows the
# user's frames and not ours; so does the place that JAX remembers of an operation.
for _file in sorted(Path(__file__).parent.glob("*.py")):
    _traceback_util.register_exclusion(str(_file))
    _source_info.register_exclusion(str(_file))
