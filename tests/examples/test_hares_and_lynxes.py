"""Hares and lynxes: the data, the simulator, the density, the draws, the next row."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
from numpyro.infer.util import log_density

from .conftest import call, load, run

program = load("hares_and_lynxes")

RATES, FIRST = np.array([0.55, 0.028, 0.8, 0.024]), np.array([34.0, 5.9])
SIGMA = np.array([0.25, 0.3])


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def by_scipy(times: np.ndarray, rates=RATES, first=FIRST) -> np.ndarray:
    """Logarithms of the populations, from the equation in its textbook form."""

    def derivative(_, z):
        (u, v), (a, b, c, d) = z, rates
        return [(a - b * v) * u, (-c + d * u) * v]

    ends, given = (times[0], times[-1]), {"rtol": 1e-11, "atol": 1e-11}
    found = scipy.integrate.solve_ivp(derivative, ends, first, t_eval=times, **given)
    return np.log(found.y.T)


# --- Data ---------------------------------------------------------------------------


def test_the_pelts_are_those_of_the_company():
    data = program.read(None)
    assert data.names == ("hare", "lynx")
    assert data.years.tolist() == [*range(1900, 1921)]
    assert data.counts.shape == (21, 2)
    assert data.counts[[0, -1]].tolist() == [[30, 4], [24.7, 8.6]]


HEAD = "t,mice,owls\n0,5,2\n0.5,6,2\n1,7,3\n3,5,2\n"


def test_a_file_of_ones_own(tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_text("\ufeff" + HEAD + "\n 4.5 , 1e1,\t2\n", encoding="utf-8")
    data = program.read(path)
    assert data.names == ("mice", "owls")
    assert data.times.tolist() == [0, 0.5, 1, 3, 4.5]
    assert data.counts[-1].tolist() == [10, 2]
    assert program.ahead(data)[:2].tolist() == [5.5, 6.5]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + "4,many,2\n", "mine.csv, line 6: mice is 'many', no number"),
        (HEAD + "4,,2\n", "mine.csv, line 6: mice is '', no number"),
        (HEAD + "4,nan,2\n", "mine.csv, line 6: mice is 'nan', no number"),
        (HEAD + "4,3,inf\n", "mine.csv, line 6: owls is 'inf', no number"),
        (HEAD + "4,3,-2\n", "mine.csv, line 6: owls is -2, not above 0"),
        (HEAD + "4,0,2\n", "mine.csv, line 6: mice is 0, not above 0"),
        (HEAD + "4,3\n", "mine.csv, line 6: 2 values, not a time and two counts"),
        (HEAD + "4,3,2,1\n", "mine.csv, line 6: 4 values, not a time and two counts"),
        (HEAD + "3,3,2\n", "mine.csv, line 6: t 3 does not come after the one before"),
        (HEAD + "\n2,3,2\n", "mine.csv, line 7: t 2 does not come after the one"),
        ("t,mice\n0,1\n", "mine.csv, line 1: 2 names of columns, not three"),
        ("0,5,2\n", "mine.csv, line 1: the first line has to name the columns"),
        (HEAD, "mine.csv has 4 rows of data: it needs five"),
        ("\n\n", "mine.csv is empty: it needs a line such as year,hare,lynx"),
        ("\xff", "mine.csv: it is not text in UTF-8"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(text, says, tmp_path, monkeypatch):
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode("latin-1"))
    monkeypatch.setattr(program, "run", None)  # nothing is run with them
    output = str(tmp_path / "output")
    ended = call(
        "hares_and_lynxes", monkeypatch, "--data", str(path), "--output", output
    )
    assert says in ended
    assert "\n" not in ended
    assert not Path(output).exists()


def test_a_file_that_is_not_there(tmp_path, monkeypatch):
    path = tmp_path / "none.csv"
    ended = call("hares_and_lynxes", monkeypatch, "--data", str(path))
    assert ended == f"Cannot read {path}: No such file or directory"


# --- The model ----------------------------------------------------------------------


def test_the_simulator_agrees_with_scipy():
    times = np.array([0, 0.5, 1, 4, 9, 20, 30.0])
    ours = program.simulate(RATES, FIRST, times)
    np.testing.assert_allclose(ours, by_scipy(times), atol=1e-4)


def test_its_derivative_is_a_difference_of_scipys():
    times, step = np.arange(21.0), 1e-5
    ours = jax.jacfwd(program.simulate)(RATES, FIRST, times)
    for k in range(4):
        more, less = (RATES + sign * step * np.eye(4)[k] for sign in (1, -1))
        theirs = (by_scipy(times, more) - by_scipy(times, less)) / (2 * step)
        np.testing.assert_allclose(ours[..., k], theirs, rtol=1e-2, atol=1e-2)


def test_a_solver_that_gives_up_gives_nan_and_not_a_number():
    wild = np.array([50.0, 50.0, 50.0, 50.0])
    assert np.isnan(program.simulate(wild, FIRST, np.arange(21.0))).all()


@pytest.mark.parametrize("missing", [None, (3, 0), (20, 1)])
def test_the_log_density_is_scipys_by_hand(missing):
    data = program.read(None)
    counts = data.counts.copy()
    log_z = by_scipy(data.times)
    terms = scipy.stats.lognorm.logpdf(counts, SIGMA, scale=np.exp(log_z))
    if missing:
        counts[missing], terms[missing] = np.nan, 0.0
    normal = scipy.stats.norm
    mean, sd = np.array([1, 0.05, 1, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])
    by_hand = terms.sum() + sum(
        [
            (normal.logpdf(RATES, mean, sd) - normal.logsf(0, mean, sd)).sum(),
            scipy.stats.lognorm.logpdf(FIRST, 1, scale=10).sum(),
            scipy.stats.lognorm.logpdf(SIGMA, 1, scale=np.exp(-1)).sum(),
        ]
    )
    parts = program.in_parts(np.concatenate([RATES, FIRST, SIGMA]))
    ours, _ = log_density(program.model, (data.times, counts), {}, parts)
    assert float(ours) == pytest.approx(by_hand, abs=1e-2)


# --- The fit ------------------------------------------------------------------------


def test_many_starts_reach_what_scipys_least_squares_reaches():
    data = program.read(None)
    starts = program.starts_from_prior(jax.random.key(0), 16)
    best, ended = program.best_of(program.fit(starts, data.times, data.counts))

    def residuals(log_params):
        rates, first = np.exp(log_params[:4]), np.exp(log_params[4:])
        return (np.log(data.counts) - by_scipy(data.times, rates, first)).ravel()

    theirs = scipy.optimize.least_squares(residuals, best + 0.02)
    np.testing.assert_allclose(best, theirs.x, atol=1e-3)
    assert ended["misfit"] == pytest.approx(2 * theirs.cost, rel=1e-5)
    counted = "reached the best", "stopped elsewhere", "gave up"
    assert sum(ended[name] for name in counted) == ended["starts"] == 16
    assert 1 < ended["reached the best"] < 16
    sigma, covariance = program.errors_of_fit(best, data.times, data.counts)
    left = residuals(best).reshape(21, 2)
    np.testing.assert_allclose(sigma, np.sqrt((left**2).mean(axis=0)), rtol=1e-4)
    weighted = theirs.jac / np.tile(sigma, 21)[:, None]
    np.testing.assert_allclose(
        covariance[:6, :6], np.linalg.inv(weighted.T @ weighted), rtol=0.02
    )


def test_starts_that_do_not_converge_are_counted_and_not_chosen():
    fits = program.Fit(
        np.arange(18.0).reshape(3, 6),
        np.array([1.0, 2.0, np.nan]),
        np.array([False, True, False]),
    )
    best, ended = program.best_of(fits)
    assert best.tolist() == [6, 7, 8, 9, 10, 11]
    assert (ended["gave up"], ended["misfit"]) == (2, 2.0)
    with pytest.raises(SystemExit, match="No fit converged"):
        program.best_of(fits._replace(converged=np.zeros(3, bool)))


# --- The draws ------------------------------------------------------------------------


def drawn(tmp_path: Path, steps: int, resume: bool, stop: int = -1, monkeypatch=None):
    """Draws of a short run; it may be interrupted after some steps."""
    data, usual = program.read(None), program.sampling

    def stopped(*given):
        for done, chains in usual(*given):
            yield done, chains
            if done == stop:
                raise KeyboardInterrupt

    size = program.Size(steps, 8, 2, 1, 1, "")
    settings = {"seed": 0}
    options = SimpleNamespace(output=tmp_path, resume=resume, settings=settings)
    start = np.log(np.concatenate([RATES, FIRST, SIGMA]))
    sampler = program.Sampler(1e-4 * np.eye(8), size)
    key = jax.random.key(3)
    if monkeypatch:
        monkeypatch.setattr(program, "sampling", stopped)
    return program.sample("short", sampler, start, data, key, steps, options)


@pytest.mark.parametrize("stop", [6, 14])  # in the warmup, and among the draws
def test_stopped_and_resumed_the_draws_are_the_same_bits(stop, tmp_path, monkeypatch):
    monkeypatch.setattr(program, "EVERY", 3)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    at_once = drawn(whole, 12, False)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        drawn(parts, 12, False, stop, patch)
    bytes_then = (parts / "short.checkpoint").read_bytes()
    again = drawn(parts, 12, True)
    for one, other in zip(at_once, again, strict=True):
        np.testing.assert_array_equal(one, other)
    last = [folder / "short.checkpoint" for folder in (whole, parts)]
    assert last[0].read_bytes() == last[1].read_bytes() != bytes_then
    assert len(np.unique(at_once[0][..., 0])) > 8  # it moved


def test_good_draws_are_used_and_bad_ones_are_not():
    rng = np.random.default_rng(0)
    draws, diverging = rng.normal(size=(200, 8, 8)), np.zeros((200, 8), bool)

    def wrong(draws, diverging):
        table, number = program.diagnose(draws, diverging)
        return program.complaints(table, number, diverging.size)

    assert wrong(draws, diverging) == []
    stuck = draws.copy()
    stuck[:, 0, 1] += 5
    assert any("R-hat of beta is" in line for line in wrong(stuck, diverging))
    assert any("effective draws" in line for line in wrong(draws[:20], diverging[:20]))
    slow = np.cumsum(draws, axis=0)
    assert any("R-hat" in line for line in wrong(slow, diverging))
    same = np.ones_like(draws)
    assert wrong(same, diverging)  # no variance at all: R-hat is NaN
    often = rng.random((200, 8)) < 0.01
    assert any("diverged, more than 1 in 1000" in s for s in wrong(draws, often))
    with pytest.raises(SystemExit, match="The draws of the posterior cannot be used: "):
        program.stop_if_useless("posterior", stuck, diverging)


# --- Predictions and the next observation ---------------------------------------------


def test_the_check_finds_residuals_that_follow_each_other():
    rng = np.random.default_rng(0)
    log_z, sigma = np.zeros((4000, 21, 2)), np.full((4000, 2), 0.3)
    noise = 0.3 * rng.normal(size=(21, 2))
    found = program.predictive_check(log_z, sigma, np.exp(noise), rng)
    assert 0.3 < found["inside 50%"] < 0.7
    assert 0.8 < found["inside 90%"] <= 1
    assert min(found["residuals follow"]) > 0.02
    noise[:, 1] = 0.3 * np.repeat([1, -1, 1], 7)
    found = program.predictive_check(log_z, sigma, np.exp(noise), rng)
    assert found["residuals follow"][1] < 0.01


def test_what_an_observation_leaves_is_the_exact_share_for_a_normal_posterior():
    """x ~ N(0, 1), seen through c x + N(0, s), keeps s^2 / (c^2 + s^2) of 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    c = np.array([[1.0, 0.5], [0.0, 2.0]])
    log_z, sigma = c * x[:, None, None], np.tile([0.5, 1.0], (4000, 1))
    exact = 1 - c**2 / (c**2 + np.array([0.5, 1.0]) ** 2)
    some = rng.integers(0, 4000, 400)
    log_y = log_z[some] + sigma[some, None] * rng.normal(size=(400, 2, 2))
    left, smallest = program.expected_variance(x, log_z, sigma, log_y)
    np.testing.assert_allclose(np.mean(left, axis=0), exact, atol=0.03)
    linear = program.linear_variance(x, log_z, sigma)
    np.testing.assert_allclose(linear, exact, atol=0.03)
    assert 10 < smallest < 4000


def test_one_more_row_is_of_one_species():
    data = program.read(None)
    more = program.with_observation(data, 23.0, 1, 17.5)
    assert more.years[-2:].tolist() == [1920, 1923]
    assert np.isnan(more.counts[-1, 0])
    assert more.counts[-1, 1] == 17.5
    assert more.counts[:-1].tolist() == data.counts.tolist()


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_it_gives_the_published_posterior(seed, tmp_path):
    found = run("hares_and_lynxes", tmp_path, seed)
    ended = found["fit"]
    assert ended["reached the best"] > ended["starts"] / 4
    assert ended["stopped elsewhere"] + ended["gave up"] > 5
    for row in found["posterior"].values():
        assert row["r_hat"] < 1.01
        assert row["ess"] > 5000
    assert found["divergences"] < 10
    assert [*found["reference"]] == [*program.REFERENCE]
    for name, row in found["reference"].items():
        assert abs(row["apart"]) < 3, name
        assert abs(row["sd apart"]) < 3, name
    # As the page says: the bands hold the data, but the residuals follow each other.
    check = found["predictive"]
    assert check["inside 90%"] > 0.85
    assert min(check["residuals follow"]) < 0.05
    further = found["next"]
    best, worst = further["best"], further["worst"]
    assert (best["species"], best["year"]) == ("lynx", 1923)
    assert best["left"] < further["left"]["hare"]["1930"] - 0.05
    for name, years in further["left"].items():
        for year, left in years.items():
            assert abs(left - further["linear"][name][year]) < 0.05
    assert best["left by refits"] < worst["left by refits"] - 0.1
    for row in (best, worst):
        # Both are Monte Carlo: of 8,000 draws, and of those that the weights leave.
        assert abs(row["left by refits"] - row["left by weights"]) < 0.1
        assert row["largest difference"] < 0.2
