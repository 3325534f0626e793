"""Instruments for seeing what JAX does with a function."""

from ._lens import Costs as Costs
from ._lens import Equation as Equation
from ._lens import Instruction as Instruction
from ._lens import Kernel as Kernel
from ._lens import Lens as Lens
from ._lens import Link as Link
from ._lens import Source as Source
from ._lens import Span as Span
from ._lens import lens as lens
from ._measure import Comparison as Comparison
from ._measure import Measurement as Measurement
from ._measure import Provenance as Provenance
from ._measure import Spread as Spread
from ._measure import measure as measure
from ._watch import Compilation as Compilation
from ._watch import Log as Log
from ._watch import Record as Record
from ._watch import Trace as Trace
from ._watch import watch as watch
from ._watch_why import Reason as Reason
