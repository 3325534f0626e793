# /// script
# dependencies = [
#     "diffrax", "jax", "matplotlib", "numpyro", "optimistix", "rich", "scikit-learn",
# ]
# ///
"""Hares and lynxes: one inverse problem, from data to the next best observation.

The pelts that the Hudson's Bay Company took from 1900 to 1920, in thousands, and the
model of Lotka and Volterra. The program fits the model from many starts (Optimistix),
samples the posterior (NumPyro), checks the draws and stops if they cannot be used,
predicts ten years with bands, and says which further observation would tell most about
the hares of the last of these years. It then simulates that observation, fits again,
and compares. A run that was stopped goes on with --resume.

    python hares_and_lynxes.py
    python hares_and_lynxes.py --data my.csv --output elsewhere

The file has one line of names and then rows of a time and two counts above zero:

    year,hare,lynx
    1900,30,4
"""

import argparse
import csv
import hashlib
import json
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
import optimistix
import study
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import NUTS

EVERY = 50  # steps from one checkpoint to the next
REFIT_STEPS = 250  # at most, after a simulated observation
FEWER = 4000  # draws for predictions
BAND = "5 %", "50 %", "95 %"
AHEAD = 10  # rows that are predicted, as far apart as those of the data


class Size(NamedTuple):
    steps: int  # draws of each chain
    warmup: int
    chains: int
    starts: int
    refits: int
    takes: str


SIZES = {
    "tiny": Size(100, 100, 16, 16, 1, "about 40 seconds, to see that it runs"),
    "small": Size(600, 100, 32, 64, 4, "about two minutes and 1 GB on two cores"),
    "large": Size(4000, 200, 64, 256, 8, "about a quarter of an hour on two cores"),
}

# --- Data ---------------------------------------------------------------------------

# As in the case study of Carpenter (2018) and in posteriordb.
PELTS = """year,hare,lynx
1900,30,4
1901,47.2,6.1
1902,70.2,9.8
1903,77.4,35.2
1904,36.3,59.4
1905,20.6,41.7
1906,18.1,19
1907,21.4,13
1908,22,8.3
1909,25.4,9.1
1910,27.1,7.4
1911,40.3,8
1912,57,12.3
1913,76.6,19.5
1914,52.3,45.7
1915,19.5,51.1
1916,11.2,29.7
1917,7.6,15.8
1918,14.6,9.7
1919,16.2,10.1
1920,24.7,8.6
"""


class Data(NamedTuple):
    names: tuple[str, str]
    years: np.ndarray  # (n,)
    counts: np.ndarray  # (n, 2); NaN where nothing was observed

    @property
    def times(self):
        return self.years - self.years[0]


def parse(text, source):
    """The data in a CSV text. A ValueError names the source and the line at fault."""
    rows = list(enumerate(csv.reader(text.splitlines()), 1))
    rows = [(line, row) for line, row in rows if any(cell.strip() for cell in row)]
    if not rows:
        raise ValueError(f"{source} is empty: it needs a line such as year,hare,lynx")
    (line, names), *rows = rows
    if len(names) != 3:
        raise ValueError(
            f"{source}, line {line}: {len(names)} names of columns, not three: "
            "a time and two species, such as year,hare,lynx"
        )
    if all(is_number(name) for name in names):
        raise ValueError(
            f"{source}, line {line}: the first line has to name the columns, "
            "such as year,hare,lynx"
        )
    table = []
    for line, row in rows:
        table.append(read_row(row, names, f"{source}, line {line}"))
        if len(table) > 1 and table[-1][0] <= table[-2][0]:
            raise ValueError(
                f"{source}, line {line}: {names[0]} {row[0].strip()} does not come "
                "after the one before"
            )
    if len(table) < 5:
        raise ValueError(f"{source} has {len(table)} rows of data: it needs five")
    years, *counts = np.array(table).T
    return Data(tuple(name.strip() for name in names[1:]), years, np.stack(counts, 1))


def read_row(row, names, place):
    if len(row) != 3:
        raise ValueError(f"{place}: {len(row)} values, not a time and two counts")
    for name, cell in zip(names, row, strict=True):
        if not is_number(cell):
            raise ValueError(f"{place}: {name.strip()} is {cell.strip()!r}, no number")
    for name, cell in zip(names[1:], row[1:], strict=True):
        if float(cell) <= 0:
            raise ValueError(f"{place}: {name.strip()} is {cell.strip()}, not above 0")
    return [float(cell) for cell in row]


def is_number(text):
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def read(path):
    """The data of the Hudson's Bay Company, or those in a file."""
    if path is None:
        return parse(PELTS, "the pelts")
    try:
        return parse(path.read_text("utf-8-sig"), path)
    except OSError as error:
        raise ValueError(f"Cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"Cannot read {path}: it is not text in UTF-8") from None


# --- The model ----------------------------------------------------------------------


def rate(t, log_z, rates):
    """d/dt of the logarithms: u' = (alpha - beta v) u, v' = (-gamma + delta u) v."""
    alpha, beta, gamma, delta = rates
    u, v = jnp.exp(log_z)
    return jnp.stack([alpha - beta * v, -gamma + delta * u])


def simulate(rates, first, times):
    """Logarithms (n, 2) of both populations at times (n,); NaN if the solver gave up.

    `first` (2,) are the populations at the first time.
    """
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(rate),
        diffrax.Tsit5(),
        times[0],
        times[-1],
        0.1,
        jnp.log(first),
        args=rates,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6),
        adjoint=diffrax.ForwardMode(),  # six inputs: forward mode is the cheaper one
        max_steps=20 * len(times),  # ten times what such a cycle takes
        throw=False,
    )
    solved = solution.result == diffrax.RESULTS.successful
    return jnp.where(solved, solution.ys, jnp.nan)


PRIOR_MEAN, PRIOR_SD = np.array([1, 0.05, 1, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])


def model(times, counts):
    """The model `lotka_volterra` of posteriordb; NaN counts are missing."""
    rates = numpyro.sample(
        "rates", dist.TruncatedNormal(PRIOR_MEAN, PRIOR_SD, low=0.0).to_event(1)
    )
    sizes = dist.LogNormal(np.log(10.0), 1.0).expand([2])
    first = numpyro.sample("first", sizes.to_event(1))
    widths = dist.LogNormal(-1.0, 1.0).expand([2])
    sigma = numpyro.sample("sigma", widths.to_event(1))
    seen = jnp.isfinite(counts)
    around = dist.LogNormal(simulate(rates, first, times), sigma).mask(seen)
    numpyro.sample("counts", around, obs=jnp.where(seen, counts, 1.0))


NAMES = (
    *("alpha", "beta", "gamma", "delta"),
    *("first_1", "first_2", "sigma_1", "sigma_2"),
)
PARTS = {"rates": slice(0, 4), "first": slice(4, 6), "sigma": slice(6, 8)}


def in_parts(vectors):
    """Vectors (..., 8) of parameters as what the model samples."""
    return {name: vectors[..., part] for name, part in PARTS.items()}


def in_order(parts):
    return np.concatenate([parts[name] for name in PARTS], axis=-1)


# --- The fit ------------------------------------------------------------------------


class Fit(NamedTuple):
    values: jax.Array  # (starts, 6), logarithms of the rates and the first populations
    misfit: jax.Array  # (starts,), sums of squares
    converged: jax.Array  # (starts,)


def residuals(log_params, data):
    times, counts = data
    rates, first = jnp.exp(log_params[:4]), jnp.exp(log_params[4:])
    return jnp.log(counts) - simulate(rates, first, times)


@jax.jit
def fit(starts, times, counts):
    """Least squares from each start (starts, 6), all at once."""
    solver = optimistix.LevenbergMarquardt(rtol=1e-8, atol=1e-8)

    def one(start):
        found = optimistix.least_squares(
            residuals,
            solver,
            start,
            (times, counts),
            options={"jac": "fwd"},
            max_steps=256,
            throw=False,
        )
        misfit = (residuals(found.value, (times, counts)) ** 2).sum()
        good = found.result == optimistix.RESULTS.successful
        return Fit(found.value, misfit, good & jnp.isfinite(misfit))

    return jax.vmap(one)(starts)


def starts_from_prior(key, count):
    one, two = jax.random.split(key)
    rates = dist.TruncatedNormal(PRIOR_MEAN, PRIOR_SD, low=0.0).sample(one, (count,))
    first = dist.LogNormal(np.log(10.0), 1.0).sample(two, (count, 2))
    return jnp.log(jnp.concatenate([rates, first], axis=1))


def best_of(fits):
    """The best fit that converged, and how the starts ended."""
    misfit = np.where(fits.converged, fits.misfit, np.inf)
    lowest = float(misfit.min())
    best, finite = misfit < lowest + 1e-3, np.isfinite(misfit)
    ended = {
        "starts": len(misfit),
        "reached the best": int(best.sum()),
        "stopped elsewhere": int((finite & ~best).sum()),
        "gave up": int((~finite).sum()),
        "misfit": lowest,
    }
    if not np.isfinite(lowest):
        sys.exit("No fit converged. Are the data in units for which the priors hold?")
    return np.asarray(fits.values[misfit.argmin()]), ended


@jax.jit
def errors_of_fit(best, times, counts):
    """Standard deviations (2,) of the residuals, and a covariance (8, 8).

    The covariance is of the logarithms of all parameters of the model: from the
    Jacobian for those of the fit, and as of normal residuals for the sigmas.
    """
    seen = jnp.isfinite(counts)
    left = jnp.where(seen, residuals(best, (times, counts)), 0.0)
    sigma = jnp.sqrt((left**2).sum(axis=0) / seen.sum(axis=0))
    jacobian = jax.jacfwd(residuals)(best, (times, counts))
    scaled = jnp.where(seen[..., None], jacobian, 0.0) / sigma[:, None]
    information = jnp.einsum("tsi,tsj->ij", scaled, scaled)
    widths = jnp.diag(0.5 / seen.sum(axis=0))
    return sigma, jax.scipy.linalg.block_diag(jnp.linalg.inv(information), widths)


# --- The posterior ------------------------------------------------------------------


class Chains(NamedTuple):
    """What a checkpoint holds, and all that the next step needs."""

    state: NamedTuple  # of NumPyro's kernel, for all chains
    draws: np.ndarray  # (steps, chains, 8)
    diverging: np.ndarray  # (steps, chains)


def sampling(step, chains, done, warmup, data):
    """Go on after `done` steps, warmup included; yield (done, chains) after each."""
    state, draws, diverging = chains
    total = warmup + len(draws)
    draws, diverging = np.array(draws), np.array(diverging)
    for number in range(done, total):
        state = step(state, *data)
        if number >= warmup:
            draws[number - warmup] = np.exp(in_order(state.z))
            diverging[number - warmup] = state.diverging
        yield number + 1, Chains(state, draws, diverging)


class Sampler:
    """NUTS for many chains at once, compiled once for data of one shape.

    The state of NumPyro's kernel is a tree of arrays, so a run can stop after any step.
    """

    def __init__(self, covariance, size):
        self.size = size
        self.covariance = np.asarray(covariance)
        kernel = NUTS(
            model,
            step_size=0.5,
            inverse_mass_matrix=self.covariance[np.ix_(BY_NAME, BY_NAME)],
            dense_mass=True,
            # The fit has set the scale. If it was wrong, `complaints` will say so.
            adapt_step_size=False,
            adapt_mass_matrix=False,
            forward_mode_differentiation=True,
        )

        def init(keys, start, *data):
            return kernel.init(keys, size.warmup, in_parts(start), data)

        self.init = jax.jit(init)
        self.step = jax.jit(lambda state, *data: kernel.sample(state, data, {}))

    def begin(self, key, start, data, steps):
        """Chains around `start` (8,), logarithms, twice as wide as the covariance."""
        count = self.size.chains
        key, its = jax.random.split(key)
        around = jax.random.multivariate_normal(
            its, start, 4 * self.covariance, (count,)
        )
        keys = jax.random.key_data(jax.random.split(key, count))
        state = self.init(keys, around, *data)
        draws = np.zeros((steps, count, len(NAMES)))
        return Chains(state, draws, np.zeros((steps, count), bool))


def sample(name, sampler, start, data, key, steps, options):
    """Draws (steps, chains, 8) of the posterior, and which of them diverged."""
    arrays, warmup = (data.times, data.counts), sampler.size.warmup
    chains = sampler.begin(key, start, arrays, steps)
    total = warmup + len(chains.draws)
    path = options.output / f"{name.replace(' ', '-')}.checkpoint"
    notes = {"settings": options.settings, "step": 0}
    if options.resume:
        chains, notes = study.restore(path, chains, notes)
    with study.progress(name, total, notes["step"]) as show:
        rest = sampling(sampler.step, chains, notes["step"], warmup, arrays)
        for done, chains in rest:
            if done % EVERY == 0 or done == total:
                show(done, "warmup" if done <= warmup else "draws")
                study.save(path, chains, notes | {"step": done})
    return np.asarray(chains.draws), np.asarray(chains.diverging)


# NumPyro orders the parts of a dense mass matrix by their names.
BY_NAME = np.concatenate([np.arange(8)[PARTS[name]] for name in sorted(PARTS)])


def diagnose(draws, diverging):
    """Of each parameter its mean, Monte Carlo error and R-hat; and the divergences."""
    chains = np.swapaxes(draws, 0, 1)
    mean, sd = chains.mean(axis=(0, 1)), chains.std(axis=(0, 1))
    with np.errstate(all="ignore"):  # chains that stand still have no R-hat: NaN
        ess, r_hat = effective_sample_size(chains), split_gelman_rubin(chains)
        columns = mean, sd, sd / np.sqrt(ess), ess, r_hat
    keys = "mean", "sd", "error", "ess", "r_hat"
    table = {
        name: dict(zip(keys, map(float, row), strict=True))
        for name, *row in zip(NAMES, *columns, strict=True)
    }
    return table, int(diverging.sum())


def complaints(table, divergences, total):
    """Why draws cannot be used: sentences, and none if they can."""
    found = []
    for name, row in table.items():
        if not row["r_hat"] < 1.02:
            found.append(f"R-hat of {name} is {row['r_hat']:.2f}, not below 1.02")
        if not row["ess"] > 400:
            found.append(f"{name} has {row['ess']:.0f} effective draws, not above 400")
    if divergences > total / 1000:
        found.append(f"{divergences} of {total} draws diverged, more than 1 in 1000")
    return found


def stop_if_useless(name, draws, diverging):
    """The diagnoses of draws; the program ends here if they cannot be used."""
    table, divergences = diagnose(draws, diverging)
    wrong = complaints(table, divergences, diverging.size)
    if wrong:
        sys.exit(
            f"The draws of the {name} cannot be used: {'; '.join(wrong)}. "
            "Take more with --steps, or another model."
        )
    return table, divergences


# --- The published posterior ----------------------------------------------------------

#: `hudson_lynx_hare-lotka_volterra` of https://github.com/stan-dev/posteriordb: of each
#: parameter the mean, its Monte Carlo error, and the mean of the squares.
REFERENCE = {
    "alpha": (0.546864499783931, 0.00062626907415417, 0.3030362900),
    "beta": (0.0277472877678081, 4.11604266143508e-05, 0.0007871719),
    "gamma": (0.800095360233122, 0.000884603225898987, 0.6481388153),
    "delta": (0.0240859152534545, 3.50047668143892e-05, 0.0005925775),
    "first_1": (34.0352224770469, 0.0293082761729642, 1166.9038171313),
    "first_2": (5.93589713368062, 0.00533872103038814, 35.5163321009),
    "sigma_1": (0.24805686320252, 0.000439337727695207, 0.0634036795),
    "sigma_2": (0.251016914583618, 0.000439525598676463, 0.0649094189),
}


def beside_reference(draws):
    """Means and standard deviations beside the published ones.

    Apart, in Monte Carlo errors of both runs together. A published standard deviation
    comes without an error: it gets the error of as many draws as that of the mean.
    """
    chains = np.swapaxes(draws, 0, 1)
    found = {}
    for i, (name, (mean, error, square)) in enumerate(REFERENCE.items()):
        x, sd = chains[..., i], np.sqrt(square - mean**2)
        squares = (x - x.mean()) ** 2
        ours = x.mean(), x.std()
        its = x.std() / np.sqrt(effective_sample_size(x))
        spread = squares.std() / (2 * x.std())
        sd_its = spread / np.sqrt(effective_sample_size(squares))
        sd_error = spread * error / sd
        row = {
            "mean": ours[0],
            "published": mean,
            "apart": (ours[0] - mean) / np.hypot(its, error),
            "sd": ours[1],
            "published sd": sd,
            "sd apart": (ours[1] - sd) / np.hypot(sd_its, sd_error),
        }
        found[name] = {key: float(value) for key, value in row.items()}
    return found


# --- Predictions ----------------------------------------------------------------------


def ahead(data):
    """Times after the data, as far apart as those of the data mostly are."""
    return data.times[-1] + np.median(np.diff(data.times)) * np.arange(1, AHEAD + 1)


@jax.jit
def paths(draws, times):
    """Logarithms (n, times, 2) of the populations that draws (n, 8) lead to."""
    return jax.vmap(lambda draw: simulate(draw[:4], draw[4:6], times))(draws)


def thinned(draws, count):
    """Draws (count, 8), evenly from all chains."""
    flat = draws.reshape(-1, draws.shape[-1])
    return flat[np.linspace(0, len(flat) - 1, min(count, len(flat))).astype(int)]


def bands(log_z, sigma, rng):
    """Quantiles 5, 50 and 95 % (3, times, 2): of populations, and of observations."""
    seen = log_z + sigma[:, None] * rng.normal(size=log_z.shape)
    return [np.exp(np.quantile(x, [0.05, 0.5, 0.95], axis=0)) for x in (log_z, seen)]


def predictive_check(log_z, sigma, counts, rng):
    """What data from the posterior have in common with the data, and what not.

    The shares of the observations inside the predicted bands; and the shares of
    simulated data sets whose residuals follow each other more than those of the data,
    by the correlation of a residual with the next one.
    """
    log_y, widths = np.log(counts), sigma[:, None]
    again = log_z + widths * rng.normal(size=log_z.shape)
    found = {}
    for share in (0.5, 0.9):
        low, high = np.quantile(again, [(1 - share) / 2, (1 + share) / 2], axis=0)
        inside = (low < log_y) & (log_y < high)
        found[f"inside {share:.0%}"] = float(inside.mean())

    def follows(log_y):
        left = (log_y - log_z) / widths
        return (left[:, 1:] * left[:, :-1]).mean(axis=1)

    more = (follows(again) >= follows(log_y)).mean(axis=0)
    return found | {"residuals follow": [float(share) for share in more]}


# --- The next observation -------------------------------------------------------------


def expected_variance(quantity, log_z, sigma, log_y):
    """Share of the variance of `quantity` (n,) that one more observation leaves.

    Draw i of the posterior predicts log_z[i], an array (times, 2). An observation y
    gives it the weight of its likelihood, and the weighted draws have a variance.
    `log_y` (m, times, 2) are observations that the posterior predicts; the result is
    the variance for each of them, (m, times, 2), and the smallest number of draws that
    the weights leave.
    """
    widths = sigma[:, None]

    def left(log_y):
        log_weights = -(((log_y - log_z) / widths) ** 2) / 2 - jnp.log(widths)
        weights = jax.nn.softmax(log_weights, axis=0)
        mean = jnp.einsum("nts,n->ts", weights, quantity)
        variance = jnp.einsum("nts,n->ts", weights, quantity**2) - mean**2
        return variance, 1 / (weights**2).sum(axis=0)

    variance, number = jax.lax.map(left, log_y)
    return variance / quantity.var(), number.min()


def linear_variance(quantity, log_z, sigma):
    """The same if the posterior were normal: from covariances alone, (times, 2)."""
    centered = log_z - log_z.mean(axis=0)
    covariance = np.einsum("nts,n->ts", centered, quantity - quantity.mean())
    covariance /= len(quantity)
    noise = (sigma**2).mean(axis=0)
    return 1 - covariance**2 / (log_z.var(axis=0) + noise) / quantity.var()


def with_observation(data, time, species, count):
    """The data and one more row, of one species alone."""
    row = np.full((1, 2), np.nan)
    row[0, species] = count
    years = np.append(data.years, data.years[0] + time)
    return Data(data.names, years, np.concatenate([data.counts, row]))


class Next(NamedTuple):
    """Candidates and what each is expected to leave of the variance."""

    times: np.ndarray
    quantity: np.ndarray  # (n,)
    log_z: np.ndarray  # (n, times, 2)
    sigma: np.ndarray  # (n, 2)
    left: np.ndarray  # (times, 2)
    linear: np.ndarray  # (times, 2)
    smallest: float  # number of draws that the weights leave

    @property
    def best(self):
        return np.unravel_index(self.left.argmin(), self.left.shape)

    @property
    def worst(self):
        return np.unravel_index(self.left.argmax(), self.left.shape)


def plan(draws, times, rng):
    """Which observation tells most about the first species at the last of the times."""
    chosen = thinned(draws, FEWER)
    log_z, sigma = np.asarray(paths(chosen, np.append(0.0, times))), chosen[:, 6:]
    log_z = log_z[:, 1:]
    quantity = log_z[:, -1, 0]
    some = rng.integers(0, len(chosen), 500)
    log_y = log_z[some]
    log_y = log_y + sigma[some, None] * rng.normal(size=log_y.shape)
    weigh = jax.jit(expected_variance)
    variance, smallest = weigh(quantity, log_z, sigma, log_y)
    linear = linear_variance(quantity, log_z, sigma)
    left = np.asarray(variance).mean(axis=0)
    return Next(times, quantity, log_z, sigma, left, linear, float(smallest))


def refit(plan, what, data, sampler, start, options, rng):
    """Simulate observations, sample again with each, and compare the variances left."""
    (at, species), rows = getattr(plan, what), []
    steps = min(options.settings["steps"], REFIT_STEPS)
    for number in range(sampler.size.refits):
        i = rng.integers(len(plan.quantity))
        noise = plan.sigma[i, species] * rng.normal()
        log_y = plan.log_z[i, at, species] + noise
        more = with_observation(data, plan.times[at], species, np.exp(log_y))
        name = f"{what} {number + 1}"
        key = jax.random.fold_in(jax.random.key(options.seed), 1000 + number)
        draws, diverging = sample(name, sampler, start, more, key, steps, options)
        stop_if_useless("posterior with one more observation", draws, diverging)
        ends = paths(thinned(draws, FEWER), np.append(0.0, plan.times))
        everywhere = np.full((1, *plan.left.shape), log_y)
        by_weights, _ = expected_variance(
            plan.quantity, plan.log_z, plan.sigma, everywhere
        )
        rows.append(
            [
                float(np.var(ends[:, -1, 0]) / plan.quantity.var()),
                float(by_weights[0, at, species]),
            ]
        )
    again, weighted = np.transpose(rows)
    return {
        "left by refits": float(again.mean()),
        "left by weights": float(weighted.mean()),
        "largest difference": float(abs(again - weighted).max()),
    }


# --- Pictures -------------------------------------------------------------------------

COLORS = "tab:blue", "tab:orange"


def draw_cycle(data, years, populations, seen, path):
    """The data, the populations with bands, and bands for what would be observed."""
    figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
    for k, (name, color) in enumerate(zip(data.names, COLORS, strict=True)):
        (low, middle, high), (least, _, most) = populations[..., k], seen[..., k]
        axes.fill_between(years, least, most, color=color, alpha=0.15, lw=0)
        axes.fill_between(years, low, high, color=color, alpha=0.4, lw=0)
        axes.plot(years, middle, color=color)
        axes.plot(data.years, data.counts[:, k], "o", ms=4, color=color, label=name)
    axes.axvline(data.years[-1], color="gray", lw=0.8, ls=":")
    axes.set(xlabel="year", ylabel="pelts (thousands)", ylim=(0, None))
    axes.legend()
    study.save_figure(figure, path)


def draw_posterior(draws, path):
    """Each parameter's draws, and the published mean and standard deviation."""
    figure, grid = plt.subplots(2, 4, figsize=(8, 3.5), layout="constrained")
    flat = draws.reshape(-1, len(NAMES))
    for axes, name, values in zip(grid.flat, NAMES, flat.T, strict=True):
        axes.hist(values, 60, density=True, color="tab:gray", alpha=0.6)
        mean, _, square = REFERENCE[name]
        sd = np.sqrt(square - mean**2)
        axes.axvline(mean, color="tab:red")
        axes.axvspan(mean - sd, mean + sd, color="tab:red", alpha=0.15, lw=0)
        axes.set(xlabel=name, yticks=[])
    study.save_figure(figure, path)


def draw_information(plan, data, path):
    figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
    years = data.years[0] + plan.times
    for k, (name, color) in enumerate(zip(data.names, COLORS, strict=True)):
        axes.plot(years, 1 - plan.left[:, k], "o-", color=color, label=name)
        axes.plot(years, 1 - plan.linear[:, k], "x", color=color)
    axes.set(xlabel="year of the observation", ylabel="share of the variance removed")
    axes.legend()
    study.save_figure(figure, path)


# --- The program ----------------------------------------------------------------------


def run(options, size, data):
    key = jax.random.key(options.seed)
    rng = np.random.default_rng(options.seed)
    starts = starts_from_prior(jax.random.fold_in(key, 1), size.starts)
    best, ended = best_of(fit(starts, data.times, data.counts))
    sigma, covariance = errors_of_fit(best, data.times, data.counts)
    start = np.concatenate([best, np.log(sigma)])
    sampler = Sampler(covariance, size)
    its = jax.random.fold_in(key, 2)
    steps = options.settings["steps"]
    draws, diverging = sample("posterior", sampler, start, data, its, steps, options)
    table, divergences = stop_if_useless("posterior", draws, diverging)

    chosen, later = thinned(draws, FEWER), ahead(data)
    log_z = np.asarray(paths(chosen, np.append(data.times, later)))
    within = log_z[:, : len(data.times)]
    populations, seen = bands(log_z, chosen[:, 6:], rng)
    candidates = plan(draws, later, rng)
    results = {
        "fit": ended,
        "posterior": table,
        "divergences": divergences,
        "predictive": predictive_check(within, chosen[:, 6:], data.counts, rng),
        "forecast": {
            name: dict(zip(BAND, populations[:, -1, k].tolist(), strict=True))
            for k, name in enumerate(data.names)
        },
    }
    if options.data is None:
        results["reference"] = beside_reference(draws)
        draw_posterior(draws, options.output / "posterior.png")
    results["next"] = describe(candidates, data)
    years = data.years[0] + np.append(data.times, later)
    draw_cycle(data, years, populations, seen, options.output / "cycle.png")
    draw_information(candidates, data, options.output / "information.png")
    report(results, data)
    again = Sampler(covariance, size)
    for what in ("best", "worst"):
        found = refit(candidates, what, data, again, start, options, rng)
        results["next"][what] |= found
        report_refit(what, found)
    return results


def describe(plan, data):
    """The candidates as figures: what each leaves of the variance."""
    years = [f"{data.years[0] + time:g}" for time in plan.times]

    def by_name(left):
        return {
            name: dict(zip(years, left[:, k].tolist(), strict=True))
            for k, name in enumerate(data.names)
        }

    found = {
        "quantity": f"log of {data.names[0]} in {years[-1]}",
        "sd": float(plan.quantity.std()),
        "left": by_name(plan.left),
        "linear": by_name(plan.linear),
        "smallest number of draws": plan.smallest,
    }
    for name in ("best", "worst"):
        at, species = getattr(plan, name)
        found[name] = {
            "species": data.names[species],
            "year": float(years[at]),
            "left": float(plan.left[at, species]),
        }
    return found


def report(results, data):
    ended = results["fit"]
    print(
        f"of {ended['starts']} starts {ended['reached the best']} reached the best "
        f"fit, {ended['stopped elsewhere']} stopped elsewhere, "
        f"{ended['gave up']} gave up"
    )
    study.print_table(results["posterior"])
    print(f"{results['divergences']} divergences")
    if "reference" in results:
        print("beside posteriordb:")
        study.print_table(results["reference"])
    check = results["predictive"]
    for share in ("50%", "90%"):
        print(f"inside the bands of {share}: {check[f'inside {share}']:.0%}")
    for name, share in zip(data.names, check["residuals follow"], strict=True):
        print(f"simulated residuals of {name} follow each other more: {share:.0%}")
    further, (name, band) = results["next"], next(iter(results["forecast"].items()))
    low, middle, high = band.values()
    print(f"{further['quantity']}: {middle:.3g} {name}, from {low:.3g} to {high:.3g}")
    for what in ("best", "worst"):
        row = further[what]
        print(
            f"{what} next observation: {row['species']} in {row['year']:g}, "
            f"leaves {row['left']:.0%} of the variance"
        )


def report_refit(what, row):
    print(
        f"{what}: simulated and sampled again, {row['left by refits']:.0%} are left "
        f"(by weights {row['left by weights']:.0%})"
    )


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, help="CSV file: a line of names, then time and two counts")
    add(
        "--output",
        type=Path,
        default=Path(Path(__file__).stem),
        help="folder to write to",
    )
    takes = "; ".join(f"{name}: {size.takes}" for name, size in SIZES.items())
    add("--size", choices=SIZES, default="small", help=f"small, if not said; {takes}")
    add(
        "--steps",
        type=study.positive,
        help="draws of a chain, if not those of the size",
    )
    add("--seed", type=study.seed_number, default=0, help="of starts and chains")
    add("--resume", action="store_true", help="go on with a run that was stopped")
    options = parser.parse_args()
    size = SIZES[options.size]
    steps = options.steps or size.steps
    options.settings = {"size": options.size, "steps": steps, "seed": options.seed}
    return options, size


def main():
    """Read the arguments and the data, run, and write the results.

    After an interrupt one line says how to go on; other faults are one line as well.
    """
    options, size = read_options()
    try:
        data = read(options.data)
    except ValueError as error:
        sys.exit(str(error))
    # Another file of data is another run.
    content = np.concatenate([data.years[:, None], data.counts], axis=1).tobytes()
    options.settings["data"] = hashlib.sha256(content).hexdigest()[:8]
    try:
        print(f"{options.size}: {size.takes}")
        options.output.mkdir(parents=True, exist_ok=True)
        with jax.enable_x64(True):
            results = run(options, size, data)
        (options.output / "results.json").write_text(json.dumps(results, indent=1))
    except BaseException as error:
        if study.is_interrupt(error):
            again = sys.argv if options.resume else [*sys.argv, "--resume"]
            sys.exit(f"Stopped. To go on from here: python {shlex.join(again)}")
        if isinstance(error, OSError):
            sys.exit(f"Cannot write to {options.output}: {error}")
        raise


if __name__ == "__main__":
    main()
