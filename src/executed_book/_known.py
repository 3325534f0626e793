"""What is known of the calls on our pages, where the syntax alone does not tell.

Tables for `_facts` and `_slice`. A name that is missing from a table of harmless calls
costs a program a line too many; one missing from a table of changes can make a program
wrong, and the tests that run every program are there to find it.
"""

import builtins


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# State that no name of the page holds is followed under a name in angle brackets.
SETTINGS = "<settings>"
NUMPY_RANDOM = "<numpy.random>"
PYTHON_RANDOM = "<random>"

# -- functions, by dotted path

# The parts of numpy.random that do not draw from the hidden global generator.
NUMPY_GENERATORS = _words(
    "default_rng Generator RandomState SeedSequence PCG64 PCG64DXSM MT19937 Philox "
    "SFC64 BitGenerator"
)
SETS = (
    "jax.config.",
    "jax.set_mesh",
    "jax.sharding.set_mesh",
    "jax.distributed.initialize",
    "jax.numpy.set_printoptions",
    "logging.",
    "matplotlib.pyplot.rc",
    "matplotlib.pyplot.style.use",
    "matplotlib.rc",
    "matplotlib.style.use",
    "matplotlib.use",
    "numpy.set_printoptions",
    "numpy.seterr",
    "os.environ.",
    "os.putenv",
    "sys.path.",
    "sys.setrecursionlimit",
    "warnings.filterwarnings",
    "warnings.resetwarnings",
    "warnings.simplefilter",
)
ONLY_READS = _words("os.environ.get jax.config.read")
# What may decide how a later import behaves.
BEFORE_IMPORTS = ("os.environ", "os.putenv", "sys.path")

PRINTS = _words(
    "pprint.pp pprint.pprint jax.debug.print sys.stdout.write sys.stdout.flush "
    "jax.debug.visualize_array_sharding jax.debug.inspect_array_sharding"
)
CHANGES_FIRST = _words(
    "bisect.insort bisect.insort_left bisect.insort_right heapq.heappush heapq.heappop "
    "heapq.heapify numpy.copyto numpy.put numpy.place numpy.putmask "
    "numpy.fill_diagonal numpy.add.at numpy.subtract.at random.shuffle"
)
# Transformations that give a function back and do not run the one they are given.
LAZY = _words(
    "jax.jit jax.grad jax.value_and_grad jax.jacfwd jax.jacrev jax.hessian jax.vmap "
    "jax.pmap jax.checkpoint jax.remat jax.shard_map jax.custom_jvp jax.custom_vjp "
    "jax.named_call jax.make_jaxpr functools.partial functools.cache "
    "functools.lru_cache"
)
GIVES_NEW = ("jax.numpy.", "jax.random.", "jax.lax.", "jax.nn.", "math.", "time.")
# Libraries whose functions leave their arguments as they are, `CHANGES_FIRST` apart.
ARGUMENTS_STAY = (
    *GIVES_NEW,
    "functools.",
    "inspect.",
    "itertools.",
    "jax.",
    "justafter.",
    "matplotlib.",
    "numpy.",
    "operator.",
    "pprint.",
    "sys.",
)
KEEPS_STATE = (
    "collections.deque",
    "io.",
    "itertools.",
    "matplotlib.",
    "numpy.random.",
    "random.Random",
)
GIVES_NONE = (
    *SETS,
    "jax.clear_caches",
    "jax.debug.",
    "jax.effects_barrier",
    "numpy.random.seed",
    "numpy.testing.",
    "pprint.",
    "random.seed",
    "random.shuffle",
    "time.sleep",
)

# -- methods, by name

RETURNING_MUTATORS = _words(
    "pop popitem popleft setdefault send __next__ read readline readlines write"
)
CONTAINER_MUTATORS = _words(
    "append appendleft extend extendleft insert remove clear sort reverse update add "
    "discard fill resize setflags"
)
PURE_METHODS = _words(
    "block_until_ready item tolist copy sum mean min max std var astype reshape ravel "
    "flatten transpose dot as_text lower compile trace keys values items count index "
    "join split format startswith endswith cost_analysis memory_analysis savefig"
)
NEW_METHODS = _words(
    "copy item tolist sum mean min max std var astype any all argmax argmin join "
    "format keys"
)
CACHE_READERS = _words("_cache_size clear_cache cache_info cache_clear clear_caches")
# The last part of a path, or a method, that traces or caches the function it is given.
TRACERS = _words(
    "jit pjit pmap make_jaxpr eval_shape scan while_loop fori_loop cond switch "
    "associative_scan checkpoint remat shard_map pallas_call linearize trace lower "
    "cache lru_cache"
)

# -- built-ins

BUILTINS = frozenset(dir(builtins)) | _words("__name__ __file__ __doc__")
PURE_BUILTINS = BUILTINS - _words("next setattr delattr iter exec eval")
NONE_BUILTINS = _words("print setattr delattr help exec breakpoint")
NEW_BUILTINS = _words(
    "abs bool bytes complex float hash id int isinstance len range repr round str sum "
    "type"
)
ITERATORS = _words("iter zip map filter enumerate reversed open")
HIDES_NAMES = _words("exec eval globals vars locals")
IPYTHON = _words("In Out _ __ ___ get_ipython display")
