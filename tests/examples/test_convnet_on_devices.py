"""The convolutional network on devices: two here, eight in the whole program."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .conftest import load, run

program = load("convnet_on_devices")
CHANNELS, DEVICES = (8, 16), 2


@pytest.fixture(scope="module")
def data() -> dict:
    return program.convnet_file.load(0)


def begin(name: str) -> tuple:
    layout = program.layouts(DEVICES)[name]
    model, optimizer, state = program.start(CHANNELS, 0)
    state = program.placed(layout, state, layout.weights)
    return layout, program.jit_step(layout, model, optimizer, state), state


def losses(name: str, data: dict, first: int, steps: int) -> list[float]:
    layout, step, state = begin(name)

    def place(batch):
        return program.placed(layout, batch, lambda shape: layout.rows)

    after = program.training(step, place, state, first, first + steps, data, 0)
    return [value for _, _, value in after]


@pytest.mark.parametrize("name", ["data parallel", "FSDP", "two axes"])
def test_the_loss_is_that_of_one_device(name: str, data: dict):
    # Step 20 sees the short batch.
    ours, alone = (losses(n, data, 17, 5) for n in (name, "one device"))
    np.testing.assert_allclose(ours, alone, rtol=1e-4)


def pmapped(step, data: dict, first: int, steps: int) -> tuple:
    model, optimizer, state = program.start(CHANNELS, 0)
    state = jax.tree.map(lambda leaf: jnp.stack([leaf] * DEVICES), state)
    stream = program.convnet_file.batches(*data["train"], 0, first)
    values = []
    for batch in islice(stream, steps):
        each = jax.tree.map(lambda a: a.reshape(DEVICES, -1, *a.shape[1:]), batch)
        *state, value = step(model, optimizer)(*state, each)
        values.append(float(value[0]))
    return state, values


def test_pmap_gives_the_same_loss_and_the_same_weights_everywhere(data: dict):
    state, values = pmapped(program.pmap_step, data, 17, 5)
    np.testing.assert_allclose(values, losses("one device", data, 17, 5), rtol=1e-4)
    for leaf in jax.tree.leaves(state):
        np.testing.assert_array_equal(leaf[0], leaf[1])


def per_device_step(model, optimizer, collect):
    def step(params, memory, batch):
        value, gradient = jax.value_and_grad(program.convnet_file.loss, 1)(
            model.forward, params, batch
        )
        value, gradient = collect((value, gradient))
        moves, memory = optimizer.update(gradient, memory, params)
        return optax.apply_updates(params, moves), memory, value

    return jax.pmap(step, axis_name="data")


def test_without_the_sum_the_replicas_would_part(data: dict):
    state, _ = pmapped(lambda m, o: per_device_step(m, o, lambda t: t), data, 0, 3)
    apart = [float(abs(leaf[0] - leaf[1]).max()) for leaf in jax.tree.leaves(state[0])]
    assert max(apart) > 1e-3


def test_the_mean_of_the_means_would_be_wrong_on_the_short_batch(data: dict):
    def mean(tree):
        return lax.pmean(tree, "data")

    # Of step 20's batch, 34 images are real: 32 on the first device, 2 on the other.
    _, [value] = pmapped(lambda m, o: per_device_step(m, o, mean), data, 19, 1)
    [alone] = losses("one device", data, 19, 1)
    assert abs(value - alone) > 1e-3


def test_what_a_device_holds():
    held = {name: program.bytes_held(begin(name)[2]) for name in program.layouts(2)}
    assert held["data parallel"] == held["one device"]
    for name in ("FSDP", "two axes"):
        assert 0.5 <= held[name] / held["one device"] < 0.53


def test_the_state_stays_divided_as_it_was(data: dict):
    layout, step, state = begin("FSDP")
    batch = next(program.convnet_file.batches(*data["train"], 0))
    *after, _ = step(*state, program.placed(layout, batch, lambda shape: layout.rows))
    before = jax.tree.map(lambda leaf: leaf.sharding, state)
    assert jax.tree.map(lambda leaf: leaf.sharding, tuple(after)) == before


def test_what_a_program_sends_is_read_from_it():
    rows = NamedSharding(program.mesh(data=DEVICES), P("data"))
    x = jax.device_put(jnp.ones((8, 5)), rows)
    total = jax.jit(lambda x: x.sum(axis=0)).lower(x).compile()
    assert program.bytes_sent(total) == {"all-reduce": 20}
    alone = jax.jit(lambda x: x + 1).lower(x).compile()
    assert program.bytes_sent(alone) == {}


def test_each_fault_is_told_and_each_cure_works(data: dict):
    model = program.convnet_file.convnet(CHANNELS)
    data = {**data, "validation": tuple(a[:249] for a in data["validation"])}
    said = program.met_on_the_way(DEVICES, model, data)
    for name, words in {
        "rows_that_do_not_divide": "IndivisibleError: ",
        "arrays_on_other_devices": "ValueError: Received incompatible devices",
        "one_spec_for_every_weight": "is incompatible with its sharding annotation",
        "axes_that_are_explicit": "ShardingTypeError: ",
    }.items():
        assert words in said[name]


def test_a_checkpoint_of_one_layout_goes_on_in_another(tmp_path: Path):
    _, _, divided = begin("FSDP")
    path = tmp_path / "some.checkpoint"
    program.save(path, divided, {"settings": {}, "step": 3})
    _, _, whole = begin("one device")
    again, notes = program.restore(path, whole, {"settings": {}})
    assert notes["step"] == 3
    for one, other in zip(*map(jax.tree.leaves, (again, divided)), strict=True):
        np.testing.assert_array_equal(one, other)
    shardings = [leaf.sharding for leaf in jax.tree.leaves(whole)]
    assert [leaf.sharding for leaf in jax.tree.leaves(again)] == shardings


@pytest.mark.weekly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_its_real_size_eight_devices_do_as_one(seed: int, tmp_path: Path):
    found = run("convnet_on_devices", tmp_path, seed)
    table = found["layouts"]
    for row in table.values():
        assert row["losses apart"] < 1e-4
    one = table["one device"]
    assert one["sent"] == {}
    assert table["data parallel"]["held"] == table["pmap"]["held"] == one["held"]
    assert table["FSDP"]["held"] < one["held"] / 7
    assert table["two axes"]["held"] < one["held"] * 0.52
    assert len(found["errors"]) == 4
