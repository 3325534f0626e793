"""Which lines on stderr are the runtime's, and which the cell's own."""

from __future__ import annotations

import pytest

from executed_book.running.stderr import KNOWN, told_apart

#: Lines as runs on GPUs have written them, by what they are about.
RUNTIME_LINES = {
    "allocator": (
        "2025-05-18 21:59:55.086788: W external/xla/xla/tsl/framework/"
        "bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to"
        " allocate 3.37GiB with freed_by_count=0."
    ),
    "allocator's table": (
        "2025-03-23 20:28:59.832478: W external/xla/xla/tsl/framework/"
        "bfc_allocator.cc:512] *______________"
    ),
    "reserve": (
        "I0000 00:00:1748491512.739773  128140 gpu_helpers.cc:177] XLA backend will use"
        " up to 1275068416 bytes on device 0 for CollectiveBFCAllocator."
    ),
    "driver": (
        "I0000 00:00:1723232760.061207 1704934 cuda_executor.cc:1015] successful NUMA"
        " node read from SysFS had negative value (-1)"
    ),
    "cuDNN": (
        "I0000 00:00:1776359130.336307   83221 cuda_dnn.cc:529] Loaded cuDNN version"
        " 90300"
    ),
    "ptxas": (
        "2025-03-17 11:23:16.393417: I external/local_xla/xla/stream_executor/cuda/"
        "subprocess_compilation.cc:346] ptxas warning : Registers are spilled to local"
        " memory in function 'gemm_fusion_dot_95', 292 bytes spill stores"
    ),
    "autotuner": (
        "E0317 05:01:29.217242  712317 buffer_comparator.cc:156] Difference at 6:"
        " 8.18504, expected 7.16615"
    ),
    "autotuner, long head": (
        "2025-03-17 05:01:29.217365: E external/xla/xla/service/gpu/autotuning/"
        "gemm_fusion_autotuner.cc:1138] Results do not match the reference. This is"
        " likely a bug/unexpected loss of precision."
    ),
    "autotuner, no head": (
        "Results do not match the reference. This is likely a bug/unexpected loss of"
        " precision."
    ),
    "timer": (
        "W0000 00:00:1723232765.694990 1705064 gpu_timer.cc:114] Skipping the delay"
        " kernel, measurement accuracy will be reduced"
    ),
    "alarm": (
        "2023-11-24 13:48:27.457100: E external/xla/xla/service/"
        "slow_operation_alarm.cc:133] The operation took 2.737849712s"
    ),
    "alarm's second line": "Trying algorithm eng11{k2=4,k3=0} for conv (f32[10000,32])",
    "search space": (
        "2026-04-19 15:51:17.121958: I external/local_xla/xla/service/gpu/autotuning/"
        "dot_search_space.cc:208] All configs were filtered out because none of them"
        " sufficiently match the hints."
    ),
    "rematerialization": (
        "2025-03-23 20:28:49.804627: W external/xla/xla/hlo/transforms/simplifiers/"
        "hlo_rematerialization.cc:3021] Can't reduce memory use below 0B (0 bytes)"
    ),
    "schedule": (
        "2025-03-23 20:28:49.804409: E external/xla/xla/service/gpu/"
        "gpu_hlo_schedule.cc:654] The byte size of input/output arguments"
        " (1374526449600) exceeds the base limit"
    ),
    "first": (
        "WARNING: All log messages before absl::InitializeLog() is called are written"
        " to STDERR"
    ),
}

OWN_LINES = (
    "UserWarning: bfc_allocator.cc:310] is mentioned",
    "Traceback (most recent call last):",
    "I0000 00:00:1776359130.3   83221 cuda_dnn.cc:529] Something nobody has seen",
    "I0000 00:00:1776359130.3   83221 my_own_extension.cc:1] hello",
    "bfc_allocator.cc:310] without a head",
    "F0317 05:01:29.217242  712317 buffer_comparator.cc:156] Difference at 6, fatal",
)


@pytest.mark.parametrize("name", RUNTIME_LINES)
def test_a_line_of_the_runtime_is_known(name):
    line = RUNTIME_LINES[name] + "\n"
    assert told_apart(line) == ("", line)
    assert told_apart(f"mine\n{line}\nmine too\n") == ("mine\nmine too\n", f"{line}\n")


@pytest.mark.parametrize("line", OWN_LINES)
def test_any_other_line_is_the_cells_own(line):
    assert told_apart(f"{line}\n") == (f"{line}\n", "")


def test_every_line_of_the_list_begins_as_text_does():
    assert all(isinstance(words, tuple) and words for words in KNOWN.values())
