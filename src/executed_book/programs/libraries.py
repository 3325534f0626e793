"""What is known of libraries, where the syntax of a page does not tell.

Tables by dotted path and by name of a method. They are short, since every program is
run before it is offered: a function that is missing here costs a program a line too
many, or is found then.
"""

from __future__ import annotations

import builtins
import sys


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _paths(root: str, text: str) -> tuple[str, ...]:
    return tuple(f"{root}.{word}" for word in text.split())


# -- state that no name of the page holds

SETTINGS, NUMPY_RANDOM, RANDOM, FILES = "<settings>", "<numpy>", "<random>", "<files>"
TRACES = "<traces>"
HIDDEN = (SETTINGS, NUMPY_RANDOM, RANDOM, FILES, TRACES)

#: What sets something that any later statement may rely on.
SETS = (
    *_paths("jax", "config. numpy.set_printoptions set_mesh"),
    *_paths("jax", "sharding.set_mesh sharding.use_mesh"),
    *_paths("jax.tree_util", "register_"),
    *_paths("logging", "addLevelName basicConfig disable setLoggerClass"),
    *_paths("matplotlib", "pyplot.rc pyplot.style.use rc rcParams style.use use"),
    *_paths("numpy", "set_printoptions seterr seterrcall"),
    *_paths("os", "chdir environ. putenv umask unsetenv"),
    *_paths("sys", "path. setrecursionlimit set_int_max_str_digits"),
    *_paths("warnings", "filterwarnings resetwarnings simplefilter"),
    *_paths("decimal", "setcontext getcontext"),
    *_paths("locale", "setlocale"),
    *_paths("signal", "signal"),
    *_paths("gc", "disable enable freeze set_"),
)
_NO_SETTINGS = (
    *_paths("jax.config", "read values"),
    *_paths("os.environ", "get copy items keys"),
    *_paths("matplotlib", "pyplot.rc_context rc_context"),
)
#: What may decide how a later import behaves.
BEFORE_IMPORTS = ("os.environ", "os.putenv", "sys.meta_path", "sys.modules", "sys.path")

_NUMPY_GENERATORS = _words(
    "default_rng Generator RandomState SeedSequence PCG64 PCG64DXSM MT19937 Philox"
)


def changes_hidden(path: str) -> str | None:
    """The hidden state that a call of a function changes, if any.

    >>> changes_hidden("numpy.random.normal"), changes_hidden("numpy.sin")
    ('<numpy>', None)
    """
    if path.startswith(SETS) and not path.startswith(_NO_SETTINGS):
        return SETTINGS
    if path.startswith("numpy.random."):
        return None if path.split(".")[2] in _NUMPY_GENERATORS else NUMPY_RANDOM
    if path.startswith("random.") and path not in USED_UP:
        return RANDOM
    if path == "jax.clear_caches":
        return TRACES
    return FILES if path.startswith(_WRITES) else None


#: What writes files, and what reads them.
_WRITES = (
    "builtins.open",
    "jax.profiler.",
    "json.dump.",
    "matplotlib.pyplot.savefig",
    "orbax.",
    "shelve.",
    "shutil.",
    "sqlite3.",
    "tarfile.",
    "zipfile.",
    *_paths("numpy", "memmap save lib.format.open_memmap"),
    *_paths("jax.numpy", "save"),
    *_paths("os", "makedirs mkdir remove rename replace rmdir unlink"),
)
READS_FILES = (
    *_paths("numpy", "fromfile genfromtxt load loadtxt"),
    *_paths("os", "access listdir path scandir stat walk"),
    *("glob.", "importlib.", "jax.numpy.load", "pandas.read_", "runpy."),
)
FILE_METHODS_READ = _words("read_text read_bytes exists is_file is_dir iterdir glob")
FILE_METHODS_WRITE = _words(
    "write_text write_bytes mkdir touch unlink rename rmdir savefig tofile to_csv write"
    " close save"
)

# -- functions that are given functions

#: They make a function of the one they are given, and do not run it now.
_WRAP = frozenset(
    (
        *_paths(
            "jax",
            "jit grad value_and_grad jacfwd jacrev jacobian hessian vmap pmap "
            "checkpoint remat shard_map smap custom_jvp custom_vjp custom_gradient "
            "named_call make_jaxpr custom_batching.custom_vmap named_scope "
            "experimental.checkify.checkify experimental.shard_map.shard_map "
            "experimental.pallas.pallas_call tree_util.Partial export.export "
            "sharding.auto_axes sharding.explicit_axes numpy.vectorize "
            "custom_derivatives.custom_jvp custom_derivatives.custom_vjp "
            "profiler.annotate_function",
        ),
        *_paths(
            "functools",
            "partial cache lru_cache wraps cached_property singledispatch "
            "total_ordering partialmethod",
        ),
        *_paths("contextlib", "contextmanager asynccontextmanager"),
        *("dataclasses.dataclass", "flax.struct.dataclass"),
        *_paths("builtins", "property staticmethod classmethod super"),
        *_paths("numpy", "vectorize frompyfunc"),
        "justafter.watch",
        "justafter.lens",
    )
)
_WRAP_LIBRARIES = _words("equinox flax")
_WRAPPER_NAMES = _words(
    "jit filter_jit grad filter_grad value_and_grad filter_value_and_grad vmap "
    "filter_vmap pmap remat checkpoint compact nowrap scan cached_partial custom_vjp"
)
#: They give back what they are given, so that they may be decorators.
GIVES_FIRST = (
    *_paths("dataclasses", "dataclass"),
    *_paths("jax", "block_until_ready tree_util.register_ device_put"),
    *_paths("flax", "struct.dataclass nnx.dataclass nnx.data nnx.static"),
    *("abc.", "atexit.register", "chex.dataclass", "contextlib.nullcontext"),
    *("enum.unique", "functools.total_ordering", "typing."),
)
#: What keeps what it has run for later calls.
KEEPS_TRACES = _words(
    "jit pjit pmap make_jaxpr eval_shape scan while_loop fori_loop cond switch "
    "associative_scan checkpoint remat shard_map pallas_call linearize trace lower "
    "cache lru_cache filter_jit cached_property watch lens"
)
#: They are given functions without calling them now.
_DO_NOT_CALL = (
    *_paths(
        "builtins",
        "callable getattr hasattr hash id isinstance issubclass print repr setattr str "
        "type vars list tuple dict set len zip enumerate reversed",
    ),
    *("dataclasses.", "inspect.", "copy.", "jax.tree_util.register", "typing."),
)


_KNOWN_ROOTS = sys.stdlib_module_names | _words(
    "IPython PIL chex einops equinox flatbuffers flax jax jaxlib jaxtyping justafter "
    "matplotlib matplotlib_inline ml_dtypes mpl_toolkits numpy optax orbax pandas "
    "scipy sklearn tqdm builtins"
)


def is_known(path: str) -> bool:
    """Whether a library is known to leave what it is given alone, exceptions apart."""
    return path.partition(".")[0] in _KNOWN_ROOTS


def wraps(path: str) -> bool:
    """Whether a function makes a function of the one it is given."""
    root, _, last = path.partition(".")[0], "", path.rpartition(".")[2]
    return path in _WRAP or (root in _WRAP_LIBRARIES and last in _WRAPPER_NAMES)


def calls_what_it_gets(path: str) -> bool:
    """Whether a function calls the functions that it is given."""
    return not path.startswith(_DO_NOT_CALL)


# -- what calls give

#: What is used up by reading it, or changed by whoever gets it.
USED_UP = (
    *_paths("builtins", "open iter zip map filter enumerate reversed"),
    *_paths("random", "Random SystemRandom"),
    *_paths("numpy.random", "default_rng Generator RandomState"),
    *("csv.", "io.", "itertools.", "flax.nnx.Rngs", "re.finditer", "os.walk"),
)
#: They change what they are given first.
CHANGES_FIRST = (
    *_paths("builtins", "next setattr delattr"),
    *_paths("numpy", "copyto put place putmask fill_diagonal random.shuffle"),
    *_paths("numpy", "add.at subtract.at multiply.at maximum.at put_along_axis"),
    *_paths("flax.nnx", "pop reseed update"),
    *("heapq.", "bisect.insort", "random.shuffle", "operator.i", "operator.setitem"),
)
#: What these give holds nothing that was given, functions apart.
_FRESH = (
    *_paths(
        "builtins",
        "abs all any bool bytes callable chr complex divmod float format hash hex id "
        "int isinstance issubclass len max min ord pow print range repr round slice "
        "str sum type",
    ),
    *("cmath.", "jax.", "math.", "numpy.", "optax.", "os.", "platform.", "string."),
    *("time.", "re."),
)
_VIEWS = (
    *_paths(
        "numpy",
        "asarray asanyarray ascontiguousarray atleast_ array_split broadcast_ diag "
        "expand_dims flip frombuffer from_dlpack imag moveaxis nditer ravel real "
        "reshape rot90 split squeeze swapaxes transpose lib.stride_tricks.",
    ),
    *("jax.dlpack.", "jax.device_put", "jax.tree.", "jax.tree_util."),
)


def holds_given(path: str) -> bool:
    """Whether what a call gives may be, or hold, what the function was given."""
    return path.startswith(_VIEWS) or not path.startswith(_FRESH)


#: No method changes what these give.
FROZEN = ("optax.", "equinox.", "jax.lax.", "jax.nn.", "jax.numpy.", "jax.tree", "re.")

# -- printing

PRINTS = (
    *_paths("builtins", "print help"),
    *_paths("jax.debug", "print visualize_ inspect_"),
    *("pprint.pp", "sys.stdout.", "sys.__stdout__.", "dis.dis", "IPython.display."),
    *("jax.print_environment_info", "tracemalloc.", "numpy.show_config"),
)
#: Other processes print where Python's own `sys.stdout` has no say.
PRINTS_BELOW = (
    "subprocess.",
    "os.system",
    "os.write",
    "os.spawn",
    "os.fork",
    "multiprocessing.",
)

# -- methods, by name

#: They change their object, and some put into it what they are given.
MUTATORS = _words(
    "append appendleft extend extendleft insert remove clear sort reverse pop popleft "
    "popitem update add discard setdefault fill resize put send throw read readline "
    "seek delete set swap addupdate step fit partial_fit train eval shuffle normal "
    "intersection_update difference_update symmetric_difference_update itemset "
    "setflags write writelines close start stop put_nowait get_nowait cancel acquire "
    "release seed standard_normal"
)
STORES = _words(
    "append appendleft extend extendleft insert update add setdefault put set send"
)
MUTATOR_PREFIXES = ("set_", "add_", "register", "def", "connect", "load_", "enable_")
#: What they give may be, or share data with, something in their object.
HOLDING = _words(
    "items values keys get pop popitem setdefault view reshape ravel transpose squeeze "
    "swapaxes copy popleft most_common __iter__ __next__ flatten elements at diagonal"
)
READS_TRACES = _words("_cache_size clear_cache cache_info cache_clear cache_size")

# -- what statements are worth

BUILTINS = frozenset(dir(builtins)) | _words("__name__ __file__ __doc__ __builtins__")
IPYTHON = _words("In Out _ __ ___ get_ipython display")
#: Functions and methods that give None, so that the prompt shows nothing of them.
GIVES_NONE = (
    *SETS,
    *_paths("builtins", "print setattr delattr help exec breakpoint"),
    *("jax.clear_caches", "jax.debug.", "jax.effects_barrier", "numpy.random.seed"),
    *("numpy.testing.", "pprint.", "random.seed", "random.shuffle", "time.sleep"),
)
METHODS_GIVE_NONE = _words(
    "append appendleft extend extendleft insert remove clear sort reverse update add "
    "discard fill resize setflags"
)
