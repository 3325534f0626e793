"""What is known of libraries, where the syntax of a page does not tell.

Tables by dotted path, and `call`, which reads them: what a call of a function does with
what it is given. A function that no table knows may change whatever it gets, call
whatever it can call, and give back any of it.

A name that is missing from a table of harmless calls costs a program a line too many;
one missing from a table of changes can make a program wrong.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _paths(root: str, text: str) -> frozenset[str]:
    return frozenset(f"{root}.{word}" for word in text.split())


# -- state that no name of the page holds, under names in angle brackets

SETTINGS = "<settings>"
NUMPY_RANDOM = "<numpy.random>"
PYTHON_RANDOM = "<random>"
FILES = "<files>"
LOGGING = "<logging>"
HIDDEN_STATES = (SETTINGS, NUMPY_RANDOM, PYTHON_RANDOM, FILES, LOGGING)

# What sets something that any later statement may rely on.
SETS = (
    "asyncio.set_event_loop",
    "contextvars.",
    "decimal.setcontext",
    "gc.",
    "importlib.reload",
    "jax.config.",
    "jax.distributed.initialize",
    "jax.numpy.set_printoptions",
    "jax.set_mesh",
    "jax.sharding.set_mesh",
    "jax.sharding.use_mesh",
    "locale.setlocale",
    "logging.addLevelName",
    "logging.basicConfig",
    "logging.disable",
    "logging.setLoggerClass",
    "matplotlib.pyplot.rc",
    "matplotlib.pyplot.style.use",
    "matplotlib.rc",
    "matplotlib.rcParams.",
    "matplotlib.rcdefaults",
    "matplotlib.style.use",
    "matplotlib.use",
    "numpy.set_printoptions",
    "numpy.seterr",
    "numpy.seterrcall",
    "os.environ.",
    "os.putenv",
    "os.umask",
    "os.unsetenv",
    "signal.signal",
    "sklearn.set_config",
    "sys.path.",
    "sys.setrecursionlimit",
    "sys.setswitchinterval",
    "sys.set_int_max_str_digits",
    "warnings.filterwarnings",
    "warnings.resetwarnings",
    "warnings.simplefilter",
)
# Functions of other modules that set something, by the beginning of their names.
_SETTERS = ("set", "register", "unregister", "enable", "disable", "install", "reset")
_NO_SETTERS = _words(
    "atexit.register builtins.set builtins.setattr codecs.setup contextlib.suppress "
    "functools.singledispatch atexit.unregister operator.setitem sys.settrace "
    "sys.setprofile threading.settrace threading.setprofile"
)
ONLY_READS = _words(
    "os.environ.get os.environ.copy os.environ.items os.environ.keys jax.config.read "
    "gc.isenabled gc.get_count gc.collect sys.setswitchinterval contextvars.ContextVar "
    "contextvars.copy_context matplotlib.pyplot.rc_context matplotlib.rc_context "
    "matplotlib.rcParams.copy matplotlib.rcParams.get"
)
# Objects of a library that everybody shares: what changes them changes a setting.
SHARED = _words("decimal.getcontext locale.localeconv numpy.geterrobj")
# What may decide how a later import behaves.
BEFORE_IMPORTS = (
    "os.environ",
    "os.putenv",
    "sys.meta_path",
    "sys.modules",
    "sys.path",
)

# The parts of numpy.random that do not draw from the hidden global generator.
_NUMPY_GENERATORS = _words(
    "default_rng Generator RandomState SeedSequence PCG64 PCG64DXSM MT19937 Philox "
    "SFC64 BitGenerator"
)

# -- who is known

_FIELD = _words(
    "IPython PIL chex einops equinox flatbuffers flax jax jaxlib jaxtyping justafter "
    "matplotlib matplotlib_inline ml_dtypes mpl_toolkits numpy optax orbax pandas "
    "scipy sklearn tqdm builtins"
)
_KNOWN_ROOTS = _FIELD | sys.stdlib_module_names
# -- Flax NNX, whose functions change what they are given

# Filters, activations and initializers: nothing changes them, and they change nothing.
_NNX_PURE = tuple(
    _paths(
        "flax.nnx",
        "All Any DiffState Everything Not Nothing OfType PathContains StateAxes "
        "WithTag avg_pool celu combine_masks dot_product_attention elu gelu glu "
        "hard_sigmoid hard_silu hard_swish hard_tanh identity initializers. leaky_relu "
        "log_sigmoid log_softmax logsumexp make_attention_mask make_causal_mask "
        "max_pool min_pool one_hot relu relu6 selu sigmoid silu soft_sign softmax "
        "softplus standardize swish tanh",
    )
)
# Layers whose calls read their weights, and those whose calls change the layer.
_NNX_READING = _paths(
    "flax.nnx",
    "Conv ConvTranspose Einsum Embed GRUCell GroupNorm InstanceNorm LSTMCell LayerNorm "
    "Linear LinearGeneral LoRA LoRALinear OptimizedLSTMCell PReLU RMSNorm SimpleCell",
)
_NNX_LAYERS = _NNX_READING | _paths(
    "flax.nnx", "BatchNorm Bidirectional Dropout MultiHeadAttention RNN Sequential"
)
# What takes a module apart and puts one together; and containers of arrays and modules.
_NNX_PARTS = _paths(
    "flax.nnx",
    "BatchStat Cache Dict GraphDef Intermediate List ModelAndOptimizer OptState "
    "Optimizer Param Rngs State Variable clone filter_state from_flat_state graphdef "
    "iter_graph iter_modules merge merge_state split split_state state to_flat_state "
    "to_pure_dict variables",
)
# These change the module or state that they are given first.
_NNX_CHANGE = _paths("flax.nnx", "pop replace_by_pure_dict reseed update")
# What changes the module that its methods are given.
OPTIMIZERS = _paths("flax.nnx", "ModelAndOptimizer Optimizer")
_NNX_KNOWN = _paths("flax.nnx", "data static") | _NNX_LAYERS | _NNX_PARTS | _NNX_CHANGE

# Known libraries whose functions change what they are given, apart from those above.
_CHANGE_ARGUMENTS = ("flax.nnx.",)
# Libraries that may draw from NumPy's global generator.
_DRAW = ("scipy.", "sklearn.", "pandas.")
# Of these the arrays and lists given are read, and not kept.
_READ_DATA = ("matplotlib.", "numpy.", "pandas.", "scipy.", "sklearn.", "time.")

# Of these, functions run what they are given and are done with it; classes keep it.
_FORGET = ("jax.", "justafter.", "matplotlib.", "numpy.", "scipy.")

# -- what they give

# Numbers, strings and the like.
_GIVE_NOTHING = (
    "builtins.",
    "cmath.",
    "jax.debug.",
    "jax.device_count",
    "jax.local_device_count",
    "jax.typeof",
    "jax.dtypes.",
    "math.",
    "os.path.",
    "platform.",
    "string.",
    "time.",
    "jax.clear_caches",
    "jax.effects_barrier",
    "jax.profiler.",
)
_ARRAYS = (
    *_paths(
        "optax",
        "convex_kl_divergence cosine_distance cosine_similarity ctc_loss global_norm "
        "hinge_loss huber_loss kl_divergence l2_loss log_cosh losses. "
        "sigmoid_binary_cross_entropy smooth_labels softmax_cross_entropy "
        "squared_error",
    ),
    "jax.dlpack.",
    "jax.image.",
    "jax.lax.",
    "jax.nn.",
    "jax.numpy.",
    "jax.ops.",
    "jax.random.",
    "jax.scipy.",
)
# Objects that nothing changes.
_FROZEN = (
    *_NNX_PURE,
    "chex.",
    "datetime.",
    "decimal.",
    "einops.",
    "enum.",
    "equinox.",
    "flax.core.",
    "flax.linen.",
    "flax.serialization.",
    "flax.struct.",
    "fractions.",
    "functools.",
    "inspect.",
    "jax.",
    "jaxlib.",
    "jaxtyping.",
    "operator.",
    "optax.",
    "pathlib.",
    "re.",
    "typing.",
    "uuid.",
    "zoneinfo.",
)
# Arrays and containers made anew, the leaves kept.
_TREES = (
    "equinox.combine",
    "equinox.filter",
    "equinox.partition",
    "equinox.apply_updates",
    "flax.core.unfreeze",
    "flax.traverse_util.",
    "jax.device_get",
    "jax.device_put",
    "jax.eval_shape",
    "jax.jvp",
    "jax.vjp",
    "jax.linearize",
    "jax.lax.scan",
    "jax.lax.while_loop",
    "jax.lax.fori_loop",
    "jax.lax.cond",
    "jax.lax.switch",
    "jax.lax.map",
    "jax.lax.associative_scan",
    "jax.pure_callback",
    "jax.block_until_ready",
    "jax.tree.",
    "jax.tree_util.tree_",
    "optax.apply_updates",
    "optax.tree",
    "dataclasses.asdict",
    "dataclasses.astuple",
    "jax.devices",
    "jax.local_devices",
    *(
        f"jax.numpy.{name}"
        for name in (
            "array_split",
            "atleast_",
            "broadcast_arrays",
            "dsplit",
            "gradient",
            "hsplit",
            "meshgrid",
            "split",
            "unstack",
            "vsplit",
        )
    ),
)
_ITERATORS = (
    "itertools.",
    "re.finditer",
    "glob.iglob",
    "os.walk",
    "os.scandir",
)
# Containers: they hold what they are given, or its elements.
_CONTAINERS = _words(
    "array.array collections.Counter collections.OrderedDict collections.UserDict "
    "collections.UserList collections.defaultdict collections.deque queue.Queue "
    "queue.LifoQueue queue.PriorityQueue queue.SimpleQueue asyncio.Queue "
    "types.SimpleNamespace weakref.WeakValueDictionary weakref.WeakSet "
    "weakref.WeakKeyDictionary"
)
# Reading an element that is missing makes it.
MAKE_ELEMENTS = _words("collections.defaultdict")
# What is used up by reading it, or changed by whoever gets it.
USED_UP = (
    "builtins.open",
    "csv.",
    "flax.nnx.Rngs",
    "io.",
    "numpy.random.",
    "os.fdopen",
    "random.Random",
    "random.SystemRandom",
    "secrets.SystemRandom",
    "tempfile.",
)
_NUMPY_VIEWS = _paths(
    "numpy",
    "asarray asanyarray asarray_chkfinite ascontiguousarray asfortranarray asmatrix "
    "atleast_1d atleast_2d atleast_3d array_split broadcast_arrays broadcast_to diag "
    "diagonal dsplit expand_dims flip fliplr flipud from_dlpack frombuffer hsplit imag "
    "matrix_transpose moveaxis ndenumerate nditer permute_dims ravel real "
    "real_if_close require reshape rollaxis rot90 split squeeze swapaxes transpose "
    "trim_zeros unstack vsplit lib.stride_tricks.as_strided "
    "lib.stride_tricks.sliding_window_view ma.asarray ma.array ma.masked_array "
    "ma.getdata ma.getmask ma.getmaskarray "
    "linalg.matrix_transpose linalg.diagonal",
)
# Of these, those that give a list.
_LISTS_OF_VIEWS = _paths(
    "numpy",
    "array_split atleast_1d atleast_2d atleast_3d broadcast_arrays dsplit gradient "
    "hsplit meshgrid split unstack vsplit",
)
_NUMPY_OBJECTS = _words(
    "errstate printoptions dtype finfo iinfo load memmap open_memmap nditer flatiter"
)
# What a call gives back as it is, so that it may be used as a decorator.
_GIVE_FIRST = _words(
    "abc.abstractmethod atexit.register builtins.iter dataclasses.dataclass "
    "enum.unique flax.nnx.data flax.nnx.dataclass flax.nnx.static "
    "flax.struct.dataclass functools.total_ordering "
    "functools.update_wrapper importlib.reload jax.tree_util.register_dataclass "
    "jax.tree_util.register_pytree_node_class jax.tree_util.register_static "
    "jax.device_put jax.block_until_ready operator.iadd operator.ior operator.iconcat "
    "types.coroutine typing.cast typing.final typing.no_type_check typing.overload "
    "typing.runtime_checkable warnings.deprecated chex.dataclass "
    "contextlib.nullcontext jax.ensure_compile_time_eval types.prepare_class"
)

# -- functions that are given functions

# They give a function back and do not run the one they are given.
_WRAP = (
    _paths(
        "jax",
        "jit grad value_and_grad jacfwd jacrev jacobian hessian vmap pmap checkpoint "
        "remat shard_map smap custom_jvp custom_vjp custom_gradient named_call "
        "make_jaxpr custom_batching.custom_vmap custom_derivatives.custom_jvp "
        "custom_derivatives.custom_vjp experimental.checkify.checkify named_scope "
        "experimental.shard_map.shard_map experimental.pjit.pjit experimental.pallas."
        "pallas_call sharding.auto_axes sharding.explicit_axes "
        "profiler.annotate_function numpy.vectorize tree_util.Partial export.export "
        "experimental.jet.jet export "
        "experimental.custom_partitioning.custom_partitioning "
        "custom_transpose.custom_transpose numpy.frompyfunc",
    )
    | _paths(
        "equinox",
        "filter_jit filter_grad filter_value_and_grad filter_vmap filter_pmap "
        "filter_checkpoint filter_custom_jvp filter_custom_vjp filter_make_jaxpr "
        "filter_jacfwd filter_jacrev filter_hessian Partial",
    )
    | _paths(
        "flax.nnx",
        "jit grad value_and_grad vmap pmap remat checkpoint custom_vjp shard_map scan "
        "cached_partial",
    )
    | _paths("flax.linen", "compact nowrap jit remat checkpoint vmap scan")
    | _paths(
        "functools",
        "partial partialmethod cache lru_cache wraps cached_property singledispatch "
        "singledispatchmethod cmp_to_key",
    )
    | _paths("contextlib", "contextmanager asynccontextmanager")
    | _paths("builtins", "property staticmethod classmethod")
    | _paths("numpy", "vectorize frompyfunc")
    | _paths("justafter", "watch")
    | _words("optax.inject_hyperparams abc.abstractproperty types.MethodType")
)
# The last part of a path, or a method, whose trace or result is kept for later calls.
COMPILERS = _words(
    "jit pjit pmap make_jaxpr eval_shape scan while_loop fori_loop cond switch "
    "associative_scan checkpoint remat shard_map pallas_call linearize trace lower "
    "cache lru_cache filter_jit filter_make_jaxpr filter_checkpoint cached_property "
    "cached_partial watch"
)
# They are given classes and functions without calling them now.
_DO_NOT_CALL = (
    "builtins.callable",
    "builtins.classmethod",
    "builtins.delattr",
    "builtins.dir",
    "builtins.getattr",
    "builtins.hasattr",
    "builtins.hash",
    "builtins.help",
    "builtins.id",
    "builtins.isinstance",
    "builtins.issubclass",
    "builtins.print",
    "builtins.repr",
    "builtins.setattr",
    "builtins.str",
    "builtins.type",
    "builtins.vars",
    "copy.",
    "dataclasses.",
    "inspect.",
    "jax.lax.",
    "jax.nn.",
    "jax.numpy.",
    "jax.random.",
    "jax.scipy.",
    "jax.tree_util.register",
    "math.",
    "matplotlib.",
    "numpy.",
    "operator.",
    "pickle.",
    "typing.",
    "types.",
    "weakref.",
)
# Of these, the functions that do call what they are given.
_CALL = (
    _paths(
        "jax.lax",
        "associative_scan cond custom_linear_solve custom_root fori_loop map "
        "platform_dependent reduce reduce_window scan switch while_loop",
    )
    | _paths(
        "jax.numpy", "apply_along_axis apply_over_axes fromfunction piecewise select"
    )
    | _paths("jax.scipy", "optimize.minimize sparse.linalg.cg sparse.linalg.gmres")
    | _paths("jax.scipy", "sparse.linalg.bicgstab")
    | _paths("numpy", "apply_along_axis apply_over_axes fromfunction piecewise")
    | _paths("numpy", "fromiter testing.assert_raises testing.assert_warns")
)
# Trees are data to these: of what they are given they call the functions themselves,
# and none that a tree, or an object in it, holds.
_READ_TREES = (
    "equinox.",
    "flax.nnx.",
    "jax.tree.",
    "jax.tree_util.tree_",
    "optax.",
    "orbax.",
)
# Of these, those whose first argument is a function.
MAPS = ("map", "reduce", "map_with_path", "reduce_associative")
# Containers of modules.
SEQUENCES = _paths("flax.nnx", "Dict List")
# What the methods of their objects give: they keep nothing of what they are given.
_METHODS_GIVE = (
    (tuple(_NNX_LAYERS), "array"),
    (("equinox.nn.", "optax."), "tree"),
)
_CALL_CLASSES = ("builtins.", "functools.", "itertools.", "concurrent.", "threading.")
# They put what a function gives into a structure of their own.
RESTRUCTURE = _words(
    "grad value_and_grad jacfwd jacrev jacobian hessian filter_grad "
    "filter_value_and_grad filter_jacfwd filter_jacrev filter_hessian"
)
CACHE_READERS = _words("_cache_size clear_cache cache_info cache_clear clear_caches")

# -- functions that change an argument, by its place

_CHANGE = {
    **dict.fromkeys(
        _words(
            "bisect.insort bisect.insort_left bisect.insort_right heapq.heappush "
            "heapq.heappop heapq.heapify heapq.heapreplace heapq.heappushpop "
            "random.shuffle operator.setitem operator.delitem operator.iadd "
            "operator.iand operator.iconcat operator.ifloordiv operator.ilshift "
            "operator.imatmul operator.imod operator.imul operator.ior operator.ipow "
            "operator.irshift operator.isub operator.itruediv operator.ixor "
            "xml.etree.ElementTree.SubElement xml.etree.ElementTree.indent "
            "builtins.setattr builtins.delattr object.__setattr__ "
            "functools.update_wrapper jax.block_until_ready types.set",
        ),
        (0,),
    ),
    **dict.fromkeys(
        _paths(
            "numpy",
            "copyto put place putmask fill_diagonal put_along_axis random.shuffle "
            "ndarray.sort ndarray.fill ma.put ma.putmask",
        ),
        (0,),
    ),
    "struct.pack_into": (1,),
    "json.dump": (1,),
    "pickle.dump": (1,),
}
# Where the outputs of NumPy's functions begin, if they are given by place.
_UNARY = (
    "absolute abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conj "
    "conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor invert isfinite "
    "isinf isnan log log10 log1p log2 logical_not negative positive rad2deg radians "
    "reciprocal rint sign signbit sin sinh sqrt square tan tanh trunc"
)
_BINARY = (
    "add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal float_power "
    "floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot lcm ldexp "
    "left_shift less less_equal logaddexp logaddexp2 logical_and logical_or "
    "logical_xor matmul maximum minimum mod multiply not_equal power remainder "
    "right_shift subtract true_divide dot outer choose round around compress matvec "
    "vecdot vecmat"
)
_OUT_FROM = {
    **dict.fromkeys(_UNARY.split(), 1),
    **dict.fromkeys(_BINARY.split(), 2),
    **dict.fromkeys(
        ["clip", "sum", "prod", "mean", "cumsum", "cumprod", "take", "all", "any"], 3
    ),
    **dict.fromkeys(
        ["max", "min", "amax", "amin", "argmax", "argmin", "argsort", "median", "ptp"],
        2,
    ),
    **dict.fromkeys(["std", "var"], 3),
    **dict.fromkeys(["concatenate"], 2),
}

_RUN_HANDLERS = _words("os.kill signal.raise_signal signal.pause signal.sigwait")

# -- printing and files

_PRINTS = (
    "builtins.print",
    "builtins.help",
    "pprint.pp",
    "pprint.pprint",
    "jax.debug.print",
    "sys.stdout.",
    "sys.__stdout__.",
    "jax.debug.visualize_array_sharding",
    "jax.debug.inspect_array_sharding",
    "jax.debug.visualize_sharding",
    "dis.dis",
    "IPython.display.",
    "timeit.main",
    "numpy.show_config",
    "numpy.info",
    "jax.print_environment_info",
    "inspect.main",
    "warnings.showwarning",
    "tracemalloc.",
)
LOGGING_METHODS = _words("debug info warning warn error critical exception log")
# Other processes print where Python's own `sys.stdout` has no say.
_PRINTS_BELOW = ("subprocess.", "os.system", "os.write", "os.spawn", "multiprocessing.")

_FILES_READ_BY_OS = (
    "os.access",
    "os.getcwd",
    "os.listdir",
    "os.path.",
    "os.scandir",
    "os.stat",
    "os.walk",
)
# All of `os` that neither reads nor writes files.
_NO_FILES = (
    "os.cpu_count",
    "os.environ",
    "os.fspath",
    "os.get",
    "os.kill",
    "os.putenv",
    "os.process_cpu_count",
    "os.sched_",
    "os.times",
    "os.umask",
    "os.uname",
    "os.unsetenv",
    "os.urandom",
)
_WRITES = (
    "builtins.open",
    "concurrent.futures.ProcessPool",
    "dbm.",
    "jax.numpy.save",
    "jax.profiler.save_",
    "jax.profiler.start_",
    "jax.profiler.trace",
    "json.dump",
    "lzma.",
    "gzip.",
    "bz2.",
    "matplotlib.image.imsave",
    "matplotlib.pyplot.imsave",
    "matplotlib.pyplot.savefig",
    "multiprocessing.",
    "numpy.memmap",
    "numpy.lib.format.open_memmap",
    "numpy.save",
    "orbax.",
    "pickle.dump",
    "scipy.io.savemat",
    "scipy.io.wavfile.write",
    "scipy.sparse.save_npz",
    "shelve.",
    "shutil.",
    "sqlite3.",
    "subprocess.",
    "tarfile.",
    "zipfile.",
)
#: What makes a folder or a file of its own, with a name that nobody knows.
TEMPORARY_FOLDERS = _paths(
    "tempfile", "TemporaryDirectory mkdtemp NamedTemporaryFile mkstemp TemporaryFile"
)
_READS = (
    *_FILES_READ_BY_OS,
    "fileinput.",
    "filecmp.",
    "glob.",
    "importlib.",
    "jax.numpy.load",
    "linecache.",
    "matplotlib.image.imread",
    "matplotlib.pyplot.imread",
    "numpy.fromfile",
    "numpy.genfromtxt",
    "numpy.load",
    "numpy.loadtxt",
    "pandas.read_",
    "pathlib.Path",
    "pathlib.Path.cwd",
    "pickle.load",
    "runpy.",
    "scipy.io.",
    "scipy.sparse.load_npz",
    "tomllib.load",
    "json.load",
    "configparser.",
    "PIL.",
)
FILE_METHODS_READ = _words(
    "read_text read_bytes exists is_file is_dir iterdir glob rglob stat samefile "
    "resolve absolute walk lstat"
)
FILE_METHODS_WRITE = _words(
    "write_text write_bytes mkdir touch unlink rename replace rmdir symlink_to chmod "
    "savefig tofile to_csv to_json to_pickle to_parquet write hardlink_to dump "
    "close flush"
)

# -- methods, by name

_LIST = "append extend insert remove clear sort reverse pop"
_SET = "add remove discard clear pop update intersection_update difference_update"
#: The methods that change a container of each kind.
CHANGING = {
    "list": _words(_LIST),
    "dict": _words("update setdefault pop popitem clear"),
    "set": _words(f"{_SET} symmetric_difference_update"),
    "bytearray": _words(_LIST),
    "ndarray": _words(
        "fill sort partition put resize setfield setflags byteswap itemset"
    ),
    "tree": _words(f"{_LIST} {_SET} setdefault popitem"),
    "ref": _words("set swap addupdate"),
    "exception": _words("add_note with_traceback"),
    "view": frozenset(),
    "tuple": frozenset(),
    "array": _words("delete"),
}
#: Of these, the methods that put what they are given into the container.
STORING = _words(
    "append appendleft insert add setdefault put put_nowait fill add_note set swap"
)
STORING_ELEMENTS = _words("extend extendleft update fromlist")
#: Methods of an array of NumPy that give numbers or a copy, and those that give data.
COPYING = _words(
    "item tolist copy sum mean min max std var astype any all argmax argmin argsort "
    "dot cumsum cumprod prod round flatten nonzero searchsorted take repeat tobytes "
    "clip choose compress conj conjugate ptp trace dump dumps tofile"
)
ARRAY_FACTS = _words("shape dtype size ndim nbytes itemsize strides flags device")
PURE_METHODS = _words(
    "all any argmax argmin as_text astype bit_length block_until_ready casefold "
    "compile copy cost_analysis elements count decision_function decode describe dot "
    "encode endswith fetchall find findall fit_predict_proba flatten format getvalue "
    "group groups head hexdigest index isoformat item items join keys lower max mean "
    "memory_analysis min most_common mro name predict predict_log_proba predict_proba "
    "ravel replace report reshape round score score_samples span split startswith std "
    "strftime strip sum summary tabulate tail title toarray todense tolist "
    "total_seconds trace transform transpose upper value_counts values var "
    "inverse_transform savefig"
)
#: Methods of texts, numbers and arrays that give a list.
GIVE_LISTS = _words("split rsplit splitlines tolist devices")
PURE_PREFIXES = ("get_", "is_", "has_", "as_", "to_")
#: Methods of a function that JAX has wrapped which give it a rule.
RULES = ("def", "register", "add_", "set_")
NEW_METHODS = _words(
    "copy item tolist sum mean min max std var astype any all argmax argmin join "
    "format keys predict predict_proba transform inverse_transform score "
    "decision_function getvalue get_ydata get_xdata"
)
CONTAINER_MUTATORS = _words(
    "append appendleft extend extendleft insert remove clear sort reverse update add "
    "discard fill resize setflags"
)

# -- classes that a class of the page may have as a base

_CONTAINER_BASES = {
    "builtins.list": "list",
    "builtins.dict": "dict",
    "builtins.set": "set",
    "builtins.bytearray": "bytearray",
    "collections.UserDict": "dict",
    "collections.UserList": "list",
    "collections.OrderedDict": "dict",
    "collections.defaultdict": "dict",
    "collections.Counter": "dict",
    "collections.deque": "container",
    "numpy.ndarray": "ndarray",
}
# Bases that add no method which changes the object or calls the page's.
_PLAIN_BASES = (
    "builtins.",
    "abc.",
    "enum.",
    "typing.",
    "typing_extensions.",
    "collections.namedtuple",
    "collections.abc.",
    "dataclasses.",
)

_MODULES = _words("flax.nnx.Module flax.nnx.Object flax.nnx.Pytree")

# -- built-ins

BUILTINS = frozenset(dir(builtins)) | _words("__name__ __file__ __doc__")
NONE_BUILTINS = _words("print setattr delattr help exec breakpoint")
HIDES_NAMES = _words("exec eval globals vars locals")
IPYTHON = _words("In Out _ __ ___ get_ipython display")
# Functions that give None, so that the prompt shows nothing of their calls.
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


# -- reading the tables


@dataclass(frozen=True)
class Call:
    """What a call of a library's function does.

    Attributes:
        gives: what comes back: "nothing", an "array" of JAX, an "ndarray", a "view" of
            an argument, the "first" argument, a new "container", a "tree" of the same
            leaves, an "iterator", a "frozen" object, a "shared" object of the library,
            or an object that may be or hold what was given, "made".
        wraps: whether it only makes a function of the one it is given.
        compiles: whether what it runs is kept for later calls.
        calls: whether it calls the functions it is given; `calls_classes` whether the
            classes too.
        changes: the places of the arguments that it changes; all if that is not known.
        forgets_functions: whether what it gives has done with those it was given.
        reads_trees: whether it calls no function that is inside of what it is given.
        methods_give: what the methods of what it gives do, if they keep nothing of what
            they are given: "array", or a "tree" of the same leaves.
        reads_data: whether it keeps none of the arrays and lists it is given.
        out_from: the place from which on arguments are outputs.
        touches: the hidden states that it changes.
        writes_files, reads_files: whether it does.
        draws: whether it may draw from NumPy's global generator.
        runs_handlers: whether it makes the process call what it keeps for signals.
    """

    gives: str
    wraps: bool = False
    compiles: bool = False
    calls: bool = True
    calls_classes: bool = False
    changes: tuple[int, ...] | None = ()
    reads_data: bool = False
    reads_trees: bool = False
    methods_give: str = ""
    forgets_functions: bool = False
    out_from: int = 1000
    touches: tuple[str, ...] = ()
    writes_files: bool = False
    reads_files: bool = False
    draws: bool = False
    prints: bool = False
    prints_below: bool = False
    runs_handlers: bool = False

    @property
    def is_unknown(self) -> bool:
        return self.changes is None

    @property
    def is_harmless(self) -> bool:
        """Whether a call leaves nothing behind, whatever it is given."""
        changes = self.changes != () or self.touches or self.prints or self.writes_files
        return not (changes or self.prints_below or self.draws or self.wraps)


@cache
def call(path: str) -> Call:
    """What a call of the function at a dotted path does.

    >>> call("numpy.add.at").changes, call("numpy.sin").gives
    ((0,), 'ndarray')
    >>> call("somewhere.fill").is_unknown
    True
    """
    last = path.rpartition(".")[2]
    known = is_known(path)
    return Call(
        gives=_gives(path, last),
        wraps=path in _WRAP,
        compiles=last in COMPILERS and not path.startswith(("re.", "builtins.")),
        calls=path in _CALL or not path.startswith(_DO_NOT_CALL),
        calls_classes=path.startswith(_CALL_CLASSES) or not known,
        changes=_changes(path, last) if known else None,
        reads_data=path.startswith(_READ_DATA),
        reads_trees=known and path.startswith(_READ_TREES),
        methods_give=_methods_give(path),
        forgets_functions=path.startswith(_FORGET) and last[:1].islower(),
        out_from=_OUT_FROM.get(path.removeprefix("numpy."), 1000),
        touches=tuple(_touches(path)),
        writes_files=_writes(path),
        reads_files=path.startswith(_READS),
        draws=not known or path.startswith(_DRAW),
        prints=path.startswith(_PRINTS),
        prints_below=path.startswith(_PRINTS_BELOW),
        runs_handlers=path in _RUN_HANDLERS,
    )


def is_known(path: str) -> bool:
    """Whether a library is known to leave its arguments alone, exceptions apart."""
    if path.startswith(_CHANGE_ARGUMENTS):
        return path in _NNX_KNOWN or path.startswith(_NNX_PURE)
    return path.partition(".")[0] in _KNOWN_ROOTS


def _gives(path: str, last: str) -> str:
    if path in _GIVE_FIRST:
        return "first"
    if path in SHARED:
        return "shared"
    if path in _CONTAINERS:
        return "container"
    if path.startswith("numpy."):
        return _numpy_gives(path, last)
    for prefixes, gives in _GIVES:
        if path.startswith(prefixes):
            return gives
    return "made"


_GIVES = (
    (("jax.new_ref", "jax.array_ref"), "ref"),
    (_TREES, "tree"),
    (_ITERATORS, "iterator"),
    (_ARRAYS, "array"),
    (_GIVE_NOTHING, "nothing"),
    (_FROZEN, "frozen"),
)


def _methods_give(path: str) -> str:
    return next((gives for paths, gives in _METHODS_GIVE if path.startswith(paths)), "")


def _numpy_gives(path: str, last: str) -> str:
    if path in _LISTS_OF_VIEWS:
        return "views"
    if path in _NUMPY_VIEWS:
        return "view"
    if path.startswith(("numpy.random.", "numpy.polynomial.")):
        return "made" if last in _NUMPY_GENERATORS else "ndarray"
    if last in _NUMPY_OBJECTS:
        return "made"
    return "ndarray"


def _changes(path: str, last: str) -> tuple[int, ...]:
    if path in _CHANGE:
        return _CHANGE[path]
    if (path.startswith("numpy.") and last == "at") or path in _NNX_CHANGE:
        return (0,)
    return (0,) if last.startswith("register") else ()


def _touches(path: str) -> list[str]:
    found = []
    if path.startswith("numpy.random."):
        if path.split(".")[2] not in _NUMPY_GENERATORS:
            found.append(NUMPY_RANDOM)
    elif path.startswith("random.") and path not in (
        "random.Random",
        "random.SystemRandom",
    ):
        found.append(PYTHON_RANDOM)
    elif (path.startswith(SETS) and path not in ONLY_READS) or _is_setter(path):
        found.append(SETTINGS)
    elif path.startswith("logging."):
        found.append(LOGGING)
    return found


def _is_setter(path: str) -> bool:
    """Whether a function sets something in its module, told from its name."""
    root, _, name = path.partition(".")
    if root in _FIELD or path in _NO_SETTERS or "." in name:
        return False
    return name.startswith(_SETTERS) and root in sys.stdlib_module_names


def _writes(path: str) -> bool:
    if path.startswith("os."):
        return not path.startswith((*_NO_FILES, *_FILES_READ_BY_OS))
    return path.startswith(_WRITES)


def is_connecting(method: str) -> bool:
    """Whether a method lets an object call a function later."""
    return "connect" in method or "callback" in method or method.startswith("on_")


def touches_files(path: str) -> bool:
    """Whether the methods of what a call gave may write and read files."""
    return path.startswith((*_WRITES, *_READS)) and not path.startswith("pathlib.")


def base_kind(paths: Iterable[str]) -> str | None:
    """The kind of container that a class with these bases is, if it is one."""
    return next((_CONTAINER_BASES[p] for p in paths if p in _CONTAINER_BASES), None)


def is_plain_base(path: str) -> bool:
    """Whether a base class leaves its objects and their methods alone."""
    return path.startswith(_PLAIN_BASES) and path not in _CONTAINER_BASES


def is_module_base(path: str) -> bool:
    """Whether the methods of a base class change their object and call none of it."""
    return path in _MODULES


def calls_change(path: str) -> bool:
    """Whether calling an object that this made may change the object."""
    return path not in _NNX_READING


def is_frozen_base(path: str) -> bool:
    """Whether the methods of a base class do not change their object."""
    return path.startswith(_FROZEN) or is_plain_base(path)


def is_pure_method(name: str) -> bool:
    """Whether a method of this name leaves its object as it is, whatever it is."""
    return name in PURE_METHODS or (
        name.startswith(PURE_PREFIXES) and name != "get_nowait"
    )
