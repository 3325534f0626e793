"""The figures of the studies: a test sees where a line of one is wrong."""

import inspect

import pytest

from . import test_diffusion, test_faults, test_frozen_encoder, test_study
from . import test_text_to_image as test_text
from .conftest import load, with_a_line_broken

#: A program, a line of it, the same line wrong, and the tests that have to fail then.
BREAKS = [
    ("diffusion", "neighbors=3)", "neighbors=20)", test_diffusion, "passes_real"),
    ("diffusion", "x[labels == c]\n", "x\n", test_diffusion, "passes_real"),
    ("diffusion", "within.any(axis=1)", "within.any(axis=0)", test_diffusion, "passes"),
    ("diffusion", "(x) == labels)", "(x) >= 0)", test_diffusion, "labels_that_are"),
    ("diffusion", "train[0]).min", "held_out[0]).min", test_diffusion, "passes_real"),
    ("diffusion", "both, np.rep", "0 * both, np.rep", test_diffusion, "passes_real"),
    ("faults", "(images - clean)", "(images)", test_faults, "linear_map"),
    ("faults", "/ NOISE**2\n", "/ NOISE\n", test_faults, "linear_map"),
    ("faults", "covariance)\n", "0.3 * covariance)\n", test_faults, "linear_map"),
    ("frozen_encoder", '"] - share)', '"] + share)', test_frozen_encoder, "is_behind"),
    ("study", ", (1000, n))]", ", (1000, 4 * n))]", test_frozen_encoder, "is_behind"),
    ("study", ") == labels", ") == model.predict(asked)", test_study, "neighbors"),
    ("study", "fit(x.reshape", "fit(0 * x.reshape", test_study, "neighbors"),
    (
        "text_to_image",
        "best // 9, best % 9",
        "best % 9, best // 9",
        test_text,
        "every_real",
    ),
    ("text_to_image", "== asked)", "== parse(pictures))", test_text, "other_prompts"),
    ("text_to_image", "right.all(1)", "right.any(1)", test_text, "other_prompts"),
]


@pytest.mark.weekly
@pytest.mark.parametrize(("name", "right", "wrong", "tests", "test"), BREAKS)
def test_a_broken_figure_is_seen(name, right, wrong, tests, test, monkeypatch):
    program = load(name)
    [check] = [
        f for key, f in vars(tests).items() if key[:5] == "test_" and test in key
    ]
    given = inspect.signature(check).parameters and {"data": program.load(0)[::2]}
    check(**given)
    with_a_line_broken(program, right, wrong, monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        check(**given)
