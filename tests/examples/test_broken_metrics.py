"""The figures of the studies: a test sees where a line of one is wrong."""

import inspect

import pytest

from . import test_diffusion, test_faults, test_frozen_encoder, test_study
from . import test_text_to_image as test_text
from . import test_three_libraries as test_three
from . import test_train_convnet as test_convnet
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
    ("faults", "1 - float(np.conc", "float(np.conc", test_faults, "tells_its_fault"),
    ("faults", "order).argmax", "order).argmin", test_faults, "tells_its_fault"),
    ("faults", "(setup, seed)[0].std", "(setup, seed)[1].std", test_faults, "tells_"),
    ("frozen_encoder", " == data[1]", " != data[1]", test_frozen_encoder, "largest_"),
    ("frozen_encoder", '"] - share)', '"] + share)', test_frozen_encoder, "is_behind"),
    ("study", "(axis=1) == y", "(axis=1) != y", test_study, "the_accuracy"),
    ("study", ", (1000, n))]", ", (1000, 4 * n))]", test_frozen_encoder, "is_behind"),
    ("study", ") == labels", ") == model.predict(asked)", test_study, "neighbors"),
    ("study", "fit(x.reshape", "fit(0 * x.reshape", test_study, "neighbors"),
    ("three_libraries", "(apart.max())\n", "(apart.min())\n", test_three, "is_apart"),
    ("three_libraries", "abs(np.subtract(", "(np.subtract(", test_three, "is_apart"),
    ("three_libraries", 'losses["plain"]))', "losses[name]))", test_three, "is_apart"),
    ("train_convnet", "(axis=1) == y", "(axis=1) != y", test_convnet, "evaluation"),
    ("train_convnet", '(batch["weight"] * each)', "each", test_convnet, "weight_zero"),
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
def test_a_broken_figure_is_seen(name, right, wrong, tests, test, request, monkeypatch):
    program = load(name)
    [check] = [
        f for key, f in vars(tests).items() if key[:5] == "test_" and test in key
    ]
    given = {}
    for parameter in inspect.signature(check).parameters:
        if parameter != "data":
            given[parameter] = request.getfixturevalue(parameter)
            continue
        data = program.load(0)
        given["data"] = data if isinstance(data, dict) else data[::2]
    check(**given)
    with_a_line_broken(program, right, wrong, monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        check(**given)
