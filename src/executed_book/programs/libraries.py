"""What is known of libraries, where the syntax of a page does not tell.

Tables by dotted path and by name of a method. They are short, since every program is
run before it is offered: a function that is missing here costs a program a line too
many, or is found then.
"""

import builtins


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _paths(root: str, text: str) -> tuple[str, ...]:
    return tuple(f"{root}.{word}" for word in text.split())


# -- state that no name of the page holds

SETTINGS, NUMPY_RANDOM, RANDOM = "<settings>", "<numpy>", "<random>"
HIDDEN = (SETTINGS, NUMPY_RANDOM, RANDOM)

#: What sets something that any later statement may rely on.
_SETS = (
    *_paths("jax", "config. numpy.set_printoptions set_mesh sharding.set_mesh"),
    *_paths("jax", "sharding.use_mesh tree_util.register_"),
    *_paths("matplotlib", "pyplot.rc pyplot.style.use rc rcParams style.use use"),
    *_paths("numpy", "set_printoptions seterr"),
    *_paths("os", "chdir environ. putenv umask unsetenv"),
    *_paths("logging", "addLevelName basicConfig disable setLoggerClass"),
    *("sys.path.", "sys.setrecursionlimit", "gc.disable", "gc.enable"),
)
_NO_SETTINGS = (
    *_paths("jax.config", "read values"),
    *_paths("os.environ", "get copy items keys"),
    *_paths("matplotlib", "pyplot.rc_context rc_context"),
)
_NUMPY_GENERATORS = _words("default_rng Generator RandomState SeedSequence")


def changes_hidden(path: str) -> str | None:
    """The hidden state that a call of a function changes, if any.

    >>> changes_hidden("numpy.random.normal"), changes_hidden("numpy.sin")
    ('<numpy>', None)
    """
    if path.startswith(_SETS) and not path.startswith(_NO_SETTINGS):
        return SETTINGS
    if path.startswith("numpy.random."):
        return None if path.split(".")[2] in _NUMPY_GENERATORS else NUMPY_RANDOM
    return RANDOM if path.startswith("random.") and path not in USED_UP else None


# -- functions that are given functions

#: They make a function of the one they are given, and do not run it now.
WRAPPERS = _words(
    "jit grad value_and_grad jacfwd jacrev jacobian hessian vmap pmap checkpoint remat "
    "shard_map smap custom_jvp custom_vjp custom_gradient custom_vmap named_call "
    "make_jaxpr named_scope checkify pallas_call Partial export auto_axes "
    "explicit_axes vectorize annotate_function partial cache lru_cache wraps "
    "cached_property singledispatch contextmanager property staticmethod classmethod "
    "super filter_jit filter_grad filter_value_and_grad filter_vmap compact nowrap "
    "cached_partial watch lens"
)
#: They give back what they are given, so that they may be decorators.
GIVES_FIRST = (
    *_paths("dataclasses", "dataclass"),
    *_paths("jax", "block_until_ready tree_util.register_ device_put"),
    *_paths("flax", "struct.dataclass nnx.dataclass nnx.data nnx.static"),
    *("abc.", "atexit.register", "chex.dataclass", "contextlib.nullcontext"),
    *("enum.unique", "functools.total_ordering", "typing."),
)


# -- what calls give

#: What is used up by reading it, or changed by whoever gets it.
USED_UP = (
    *_paths("builtins", "open iter zip map filter enumerate reversed"),
    *_paths("random", "Random SystemRandom"),
    *_paths("numpy.random", "default_rng Generator RandomState"),
    *("csv.", "io.", "itertools.", "flax.nnx.Rngs", "re.finditer", "os.walk"),
)
#: What these give holds nothing that was given, functions apart.
FRESH = (
    *_paths(
        "builtins",
        "abs all any bool bytes callable chr complex divmod float format hash hex id "
        "int isinstance issubclass len max min ord pow print range repr round slice "
        "str sum type",
    ),
    *("cmath.", "math.", "numpy.", "optax.", "os.", "platform.", "string.", "time."),
    *("jax.random", "jax.numpy", "jax.lax", "jax.nn", "jax.d", "jax.eval", "re."),
)

#: No method changes what these give.
FROZEN = ("optax.", "equinox.", "jax.lax.", "jax.nn.", "jax.numpy.", "jax.tree", "re.")

# -- printing

PRINTS = (
    *_paths("builtins", "print help"),
    *_paths("jax.debug", "print visualize_ inspect_"),
    *("pprint.pp", "sys.stdout.", "sys.__stdout__.", "dis.dis", "IPython.display."),
    *("jax.print_environment_info", "tracemalloc.", "numpy.show_config"),
)
# -- methods, by name

#: They change their object, and some put into it what they are given.
_MUTATORS = _words(
    "append appendleft extend extendleft insert remove clear sort reverse pop popleft "
    "popitem update add discard setdefault fill resize put send throw read readline "
    "seek delete set swap addupdate step fit partial_fit train eval shuffle normal "
    "setflags write writelines close start stop put_nowait get_nowait cancel acquire "
    "release seed standard_normal"
)
_MUTATOR_PREFIXES = ("set_", "add_", "register", "def", "connect", "load_", "enable_")
STORES = _words(
    "append appendleft extend extendleft insert update add setdefault put set send"
)


def mutates(name: str) -> bool:
    """Whether a method of this name changes its object."""
    return name in _MUTATORS or name.startswith(_MUTATOR_PREFIXES)


# -- what statements are worth

BUILTINS = frozenset(dir(builtins)) | _words("__name__ __file__ __doc__ __builtins__")
IPYTHON = _words("In Out _ __ ___ get_ipython display")
#: Functions and methods that give None, so that the prompt shows nothing of them.
GIVES_NONE = (
    *_SETS,
    *_paths("builtins", "print setattr delattr help exec breakpoint"),
    *("jax.clear_caches", "jax.debug.", "jax.effects_barrier", "numpy.random.seed"),
    *("numpy.testing.", "pprint.", "random.seed", "random.shuffle", "time.sleep"),
    *("warnings.simplefilter", "warnings.filterwarnings", "warnings.resetwarnings"),
)
METHODS_GIVE_NONE = _words(
    "append appendleft extend extendleft insert remove clear sort reverse update add "
    "discard fill resize setflags"
)
