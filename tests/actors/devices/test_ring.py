"""What replicas reduce among themselves: the buckets, and the sums that go round, without Ray."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

from tfray.actors.devices.ring import BUCKET_BYTES, GATHERED_BYTES, RingLayout, RingStep
from tfray.errors import AbortedError, DataLossError, UnavailableError
from tfray.runtime.edge_key import EdgeKey
from tfray.runtime.ring_edge import RING_DEVICE, RingEdge

WAIT_S = 60.0


def edge(name, shape, reduction="mean", dtype="float32", result_dtype=None):
    key = EdgeKey.of_tensor(name, 0, "/job:worker", RING_DEVICE)
    result = EdgeKey.of_tensor(name, 0, RING_DEVICE, "/job:worker")
    return RingEdge(str(key), str(result), reduction, dtype, result_dtype or dtype, shape)


def device(replica):
    return f"/job:worker/task:{replica}/device:CPU:0"


class Carrier:
    """Stands for a rendezvous: hands to the ring of the next replica what is sent to it, with the flush."""

    sent_bytes = 0

    def __init__(self, rings):
        self._rings, self._held = rings, []

    def room(self, key, destination, shape, dtype):
        return np.empty(shape, dtype)

    def send(self, key, destination, value):
        self.sent_bytes += value.nbytes
        self._held.append((destination, key, np.array(value)))

    def flush(self):
        held, self._held = self._held, []
        for destination, key, value in held:
            self._rings[destination].add([(key, value)])

    def wait_until_received(self, timeout_s):
        assert not self._held, "all has left"

    def close(self):
        """Do nothing."""


class Ring:
    """Replicas that reduce the same edges. `results`: by replica, what has been handed over."""

    def __init__(self, edges, replicas):
        self.names, rings = [device(replica) for replica in range(replicas)], {}
        layout = RingLayout(edges)
        self.results = [{} for _ in self.names]
        self.carriers = [Carrier(rings) for _ in self.names]
        for name, carrier, results in zip(self.names, self.carriers, self.results, strict=True):
            rings[name] = RingStep(layout, self.names, name, carrier, results.update)
        self.steps = list(rings.values())
        self.errors = []

    def _run(self, step):
        try:
            step.run()
        except (AbortedError, DataLossError) as error:
            self.errors.append(error)

    def reduce(self, contributions, contribute):
        """Run all replicas, each on a thread, while `contribute(step, contributions)` brings what is theirs."""
        threads = [threading.Thread(target=self._run, args=[step], daemon=True) for step in self.steps]
        for thread in threads:
            thread.start()
        for step, of_replica in zip(self.steps, contributions, strict=True):
            contribute(step, of_replica)
        for thread in threads:
            thread.join(WAIT_S)
            assert not thread.is_alive(), "a replica waits for ever"
        return self.results


def give_all(step, contributions):
    for key, value in contributions:
        step.contribute(key, value)


def drawn(edges, replicas):
    rng = np.random.default_rng(1)
    return [
        [(each.key, rng.normal(size=each.shape).astype(np.dtype(each.dtype))) for each in edges]
        for _ in range(replicas)
    ]


# -- buckets -------------------------------------------------------------------------------------------


def test_small_contributions_of_one_dtype_travel_together():
    edges = [
        edge("w", (300, 4)),
        edge("b", (4,)),
        edge("half", (8,), dtype="bfloat16", result_dtype="float32"),
        edge("scalar", ()),
        edge("rows", None, "concat_mean"),
        edge("unknown", None),
        edge("one", (), "first"),
        edge("count", (2,), dtype="int32"),
    ]
    layout = RingLayout(edges)
    found = {tuple(each.key.split(":")[0] for each in bucket.edges): bucket.is_flat for bucket in layout.buckets}
    assert found == {
        ("w", "b", "scalar"): True,
        ("half",): True,
        ("rows",): False,
        ("unknown",): False,
        ("one",): False,
        ("count",): False,
    }


def test_a_bucket_has_a_limit_unless_one_contribution_is_larger():
    quarter = BUCKET_BYTES // 16
    layout = RingLayout([edge(f"e{number}", (quarter,)) for number in range(6)] + [edge("large", (5 * quarter,))])
    assert [len(bucket.edges) for bucket in layout.buckets] == [4, 2, 1]
    assert all(bucket.is_summed for bucket in layout.buckets)


# -- sums ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("count", [1, 3, 1000, GATHERED_BYTES // 4 + 1, GATHERED_BYTES + 3])
def test_all_replicas_have_the_same_mean_bit_by_bit(replicas, count):
    edges = [edge("w", (count,)), edge("m", (3, 5)), edge("s", ())]
    given = drawn(edges, replicas)
    results = Ring(edges, replicas).reduce(given, give_all)
    for number, each in enumerate(edges):
        values = [of_replica[number][1] for of_replica in given]
        want = np.mean(values, axis=0, dtype=np.float64)
        found = [of_replica[each.result] for of_replica in results]
        assert all(value.shape == each.shape and value.dtype == np.float32 for value in found)
        np.testing.assert_allclose(found[0], want, rtol=1e-5, atol=1e-6)
        assert all(value.tobytes() == found[0].tobytes() for value in found)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_narrow_contributions_are_summed_up_in_32_bits_and_stay_in_range(dtype, replicas):
    narrow = np.dtype(dtype) if dtype == "float16" else np.dtype(ml_dtypes.bfloat16)
    count = GATHERED_BYTES + 7
    edges = [edge("w", (count,), dtype=dtype, result_dtype="float32")]
    rng = np.random.default_rng(2)
    values = [(60000 * rng.uniform(0.5, 1.0, count)).astype(narrow) for _ in range(replicas)]
    results = Ring(edges, replicas).reduce([[(edges[0].key, value)] for value in values], give_all)
    want = np.mean([value.astype(np.float64) for value in values], axis=0)
    for of_replica in results:
        (found,) = of_replica.values()
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, rtol=replicas * 2.0 ** (-10 if dtype == "float16" else -7))
        assert found.tobytes() == next(iter(results[0].values())).tobytes()


def test_each_replica_sends_less_than_twice_the_bytes_of_a_bucket():
    edges, replicas = [edge("w", (1 << 16,))], 4
    ring = Ring(edges, replicas)
    ring.reduce(drawn(edges, replicas), give_all)
    assert [carrier.sent_bytes for carrier in ring.carriers] == [2 * (replicas - 1) * (1 << 16)] * replicas


# -- what is no sum ------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_rows_are_joined_in_the_order_of_the_replicas(replicas):
    edges = [edge("rows", None, "concat_mean"), edge("indices", None, "concat", "int32"), edge("x", (), "first")]
    given = [
        [
            (edges[0].key, np.full((replica + 1, 2), replica, np.float32)),
            (edges[1].key, np.arange(replica + 1, dtype=np.int32)),
            (edges[2].key, np.float32(10 + replica)),
        ]
        for replica in range(replicas)
    ]
    for results in Ring(edges, replicas).reduce(given, give_all):
        joined = np.concatenate([of_replica[0][1] for of_replica in given])
        np.testing.assert_allclose(results[edges[0].result], joined / replicas, rtol=1e-6)
        np.testing.assert_array_equal(results[edges[1].result], np.concatenate([each[1][1] for each in given]))
        assert results[edges[2].result] == 10


# -- rooms, and what goes wrong ------------------------------------------------------------------------


def test_what_is_computed_into_its_room_is_not_copied():
    edges = [edge("a", (2, 3)), edge("b", (4,)), edge("rows", None, "concat")]

    def in_place(step, contributions):
        for key, value in contributions[:2]:
            room = step.room(key)
            room[...] = value
            step.contribute(key, room)
        key, value = contributions[2]
        assert step.room(key) is None
        step.contribute(key, value)

    given = [
        [(edges[0].key, np.full((2, 3), r)), (edges[1].key, np.full(4, -r)), (edges[2].key, np.full(1, r, np.float32))]
        for r in (1.0, 3.0)
    ]
    for results in Ring(edges, 2).reduce(given, in_place):
        np.testing.assert_array_equal(results[edges[0].result], np.full((2, 3), 2.0))
        np.testing.assert_array_equal(results[edges[1].result], np.full(4, -2.0))


def test_a_replica_that_is_told_of_an_error_ends_with_it():
    edges = [edge("w", (10,))]
    ring = Ring(edges, 2)

    def contribute(step, contributions):
        if step is ring.steps[0]:
            give_all(step, contributions)
        for each in ring.steps:
            each.end(AbortedError("the other worker is gone"))

    assert ring.reduce(drawn(edges, 2), contribute) == [{}, {}]
    assert [error.message for error in ring.errors] == ["the other worker is gone"] * 2


def test_a_replica_that_is_lost_ends_the_one_that_waits_for_it():
    edges = [edge("w", (10,))]
    ring = Ring(edges, 3)
    ring.steps[0].lose({device(1)})  # it sends to that one
    ring.steps[1].lose({device(1)})
    for step in ring.steps[1:]:
        step.lose({device(0), device(1)})
        with pytest.raises(UnavailableError, match="while gradients were reduced") as raised:
            step.run()
        assert raised.value.device == (device(0) if step is ring.steps[1] else device(1))
    assert ring.steps[0]._news.empty()


def test_a_chunk_of_another_size_is_refused():
    edges = [edge("w", (GATHERED_BYTES,))]
    ring = Ring(edges, 2)
    key = str(EdgeKey("_ring/0/0", device(1), device(0)))
    ring.steps[0].add([(key, np.zeros(3, np.float32))])
    give_all(ring.steps[0], drawn(edges, 1)[0])
    with pytest.raises(DataLossError, match=r"float32\[16384\] was expected, and float32\[3\] came"):
        ring.steps[0].run()
