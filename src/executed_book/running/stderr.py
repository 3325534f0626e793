"""Telling what a cell writes to stderr from what the runtime logs there by itself.

XLA, the driver's libraries and the allocator write to the process's stderr whenever
they find something worth a line: that an algorithm was slow to tune, that memory is
short. Such lines come and go with the device, the driver and the load, so they are no
output of the cell that ran just then. An explicit list recognizes them, line by line;
a line that is not on it is the cell's own.
"""

import re

#: How a line of XLA's log begins, in the forms that are in use: the letter of its
#: severity and a date or the seconds since 1970, or a date and then the severity.
_HEAD = re.compile(
    r"(?:[IWE]\d{4} \d\d:\d\d:\d+\.\d+ +\d+ "
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] )"
    r"(?:\S*/)?(?P<file>[\w.-]+\.cc):\d+\] ?(?P<text>.*)"
)

#: The lines of XLA's log that are known, by the file that writes them: how the text
#: begins. An empty beginning stands for every line of that file.
KNOWN: dict[str, tuple[str, ...]] = {
    # The allocator: that it runs short, and its table of what is in use.
    "bfc_allocator.cc": ("",),
    "gpu_helpers.cc": ("Using BFC allocator", "XLA backend "),
    # The driver and its libraries.
    "cuda_executor.cc": ("successful NUMA node read", "failed to allocate "),
    "cuda_gpu_executor.cc": ("successful NUMA node read",),
    "cuda_driver.cc": ("failed to allocate ",),
    "cuda_timer.cc": ("Delay kernel timed out",),
    "cuda_dnn.cc": ("Loaded cuDNN version",),
    "service.cc": ("XLA service ", "  StreamExecutor device"),
    "asm_compiler.cc": ("ptxas warning",),
    "subprocess_compilation.cc": ("ptxas warning",),
    # The autotuner, which tries several kernels for a product and compares them.
    "buffer_comparator.cc": ("Difference at ",),
    "conv_algorithm_picker.cc": ("None of the algorithms", "Results mismatch"),
    "dot_search_space.cc": ("All configs were filtered out",),
    "gemm_fusion_autotuner.cc": ("",),
    "gpu_conv_algorithm_picker.cc": ("None of the algorithms", "Results mismatch"),
    "gpu_timer.cc": ("Skipping the delay",),
    "slow_operation_alarm.cc": ("",),
    # The compiler, when it fears for memory.
    "gpu_hlo_schedule.cc": ("The byte size of input/output arguments",),
    "hlo_rematerialization.cc": ("Can't reduce memory use below",),
}

#: Lines without such a head.
KNOWN_PLAIN = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to",
    "Results do not match the reference. This is likely a bug/unexpected loss of",
    "Trying algorithm ",  # the alarm about a slow one tells it on a second line
    # The allocator's table, below its head.
    "If this is caused by memory fragmentation, the environment variable",
    "Current allocation summary follows.",
    # The alarm about a constant that takes long to fold, as on a busy machine.
    "Constant folding an instruction is taking > ",
    "This isn't necessarily a bug; constant-folding is inherently a trade-off",
    "If you'd like to file a bug, run with envvar XLA_FLAGS=--xla_dump_to=",
)
#: The instruction that the alarm names.
_INSTRUCTION = re.compile(r"  %[\w.-]+ = \w+\[.*")


def is_the_runtimes(line: str) -> bool:
    """Whether a line is known as one that XLA, the driver or the allocator log.

    >>> is_the_runtimes("I0000 00:00:17.7  12 cuda_dnn.cc:529] Loaded cuDNN version 9")
    True
    >>> is_the_runtimes("UserWarning: Loaded cuDNN version 9")
    False
    """
    if match := _HEAD.fullmatch(line):
        return match["text"].startswith(KNOWN.get(match["file"], ()))
    return line.startswith(KNOWN_PLAIN) or bool(_INSTRUCTION.match(line))


def told_apart(text: str) -> tuple[str, str]:
    """What of a text on stderr is the cell's own, and what the runtime's.

    An empty line right after one of the runtime's goes with it.

    >>> told_apart("mine\\nE0317 05:01:29.2  7 gpu_timer.cc:1] Skipping the delay")
    ('mine\\n', 'E0317 05:01:29.2  7 gpu_timer.cc:1] Skipping the delay')
    """
    own: list[str] = []
    logged: list[str] = []
    known = False
    for line in text.splitlines(keepends=True):
        known = is_the_runtimes(line.rstrip("\r\n")) or (known and not line.strip())
        (logged if known else own).append(line)
    return "".join(own), "".join(logged)
