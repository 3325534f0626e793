"""What training in earnest needs: commands that show it, and tests that guard it."""

import importlib.util
import re

import pytest

from . import test_lm
from .figures import EXAMPLES

TRAIN = "python -m lm.train --data FOLDER --output RUN"
TWO = "python -m lm.launch --processes 2 --devices 4 lm.train"

#: What is needed, the command to give in `examples`, and how the tests' names begin.
ROWS = {
    "a pipeline that scales": (TRAIN, "processes_read no_two_processes a_thousand"),
    "data of one's own": (TRAIN, "a_folder_without_text a_corpus_of_other_text"),
    "a split that does not leak": (
        TRAIN,
        "near_copies a_file_keeps passages_seen training_text",
    ),
    "tokens": (f"{TRAIN} --vocab 4096", "tokens_give a_tokenizer_that"),
    "a model as its field writes it": (TRAIN, "the_same_model no_token_sees"),
    "mixed precision": (f"{TRAIN} --compute bfloat16", "parts_of_a_batch"),
    "accumulation": (f"{TRAIN} --accumulate 2", "parts_of_a_batch"),
    "rematerialization": (f"{TRAIN} --remat all", "remat_keeps_less"),
    "donation": ("python -m tests.examples.lm_figures layouts", "a_run_says every_l"),
    "devices": (f"{TRAIN} --parallel fsdp", "every_layout sizes_that"),
    "processes": (f"{TWO} --parallel fsdp", "two_processes_of processes_found"),
    "checkpoints": (f"{TRAIN} --save_every 100", "written_on_eight a_damaged"),
    "preemption": (TRAIN, "terminated_or_killed two_processes_save a_disk a_full"),
    "metrics": (TRAIN, "a_run_says tensorboard_reads"),
    "evaluation": ("python -m lm.baselines RUN", "bits_a_byte kneser_ney a_compressor"),
    "configuration": (f"{TRAIN} --config own.toml", "a_file_of_options sizes_that"),
    "profiling": (f"{TRAIN} --profile", "a_profile_holds"),
    "generation": ("python -m lm.generate RUN", "the_cache only_likely a_prompt"),
    "serving": ("python -m lm.export RUN EXPORTED", "exported_it_is_served"),
    "adapting": ("python -m lm.adapt RUN --output ADAPTED", "adapters_change"),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_is_shown_by_a_command_and_guarded_by_tests(row, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from lm.config import parser

    command, tests = ROWS[row]
    for module in re.findall(r"\blm\.\w+", command):
        assert importlib.util.find_spec(module)
    known = parser("").format_help()
    for option in re.findall(r"--\w+", command.partition("lm.train")[2]):
        assert option in known
    for start in tests.split():
        assert any(name.startswith(f"test_{start}") for name in vars(test_lm)), start
