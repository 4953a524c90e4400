"""Tables whose rows go to ids that are used: who gets a row, who loses it, and what the owners inherit."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfray as tf
from tfray.errors import InvalidArgumentError
from tfray.ops.resources.row_index import LEAST_CANDIDATES, RowIndex
from tfray.ops.state import row_index_ops

DIM = 3


def ones(shape):
    return tf.ones(shape)


def table(name="words", capacity=4, **options):
    return tf.train.DynamicEmbedding(name, DIM, capacity, **{"initializer": ones, **options})


# -- the index -------------------------------------------------------------------------------------------


class Model:
    """What an index with the policy "lru" does, said plainly."""

    def __init__(self, capacity, admit_after):
        self.capacity, self.admit_after = capacity, admit_after
        self.owners: dict[int, list[int]] = {}  # id to [seen at, count]
        self.waiting = Counter()
        self.clock = 0

    def assign(self, ids):
        self.clock += 1
        counts = Counter(ids)
        for each in counts:
            if each in self.owners:
                self.owners[each] = [self.clock, self.owners[each][1] + counts[each]]
        for each in sorted(set(counts) - set(self.owners)):
            self.waiting[each] += counts[each]
            if self.waiting[each] < self.admit_after:
                continue
            if len(self.owners) == self.capacity and not self._forget_one():
                continue
            self.owners[each] = [self.clock, self.waiting.pop(each)]
        return {each for each in counts if each in self.owners}

    def _forget_one(self):
        old = [each for each, (seen_at, _) in self.owners.items() if seen_at < self.clock]
        if not old:
            return False
        del self.owners[min(old, key=lambda each: self.owners[each][0])]
        return True


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=1), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_rows_go_to_the_ids_seen_last(batches, capacity, admit_after):
    index, model = RowIndex("i", capacity, admit_after, "lru"), Model(capacity, admit_after)
    for batch in batches:
        rows, fresh = index.assign(np.array(batch, np.int64))
        expected = model.assign(batch)
        assert {each for each, row in zip(batch, rows.tolist(), strict=True) if row >= 0} == expected
        ids, taken = index.entries()
        assert set(ids.tolist()) == set(model.owners) and len(set(taken.tolist())) == len(ids) <= capacity
        assert (index.find(ids) == taken).all() and set(fresh.tolist()) <= set(taken.tolist())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 30), min_size=0, max_size=8), min_size=1, max_size=40),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from(["lru", "lfu"]),
)
def test_whatever_is_seen_the_index_is_consistent(batches, capacity, admit_after, evict):
    index = RowIndex("i", capacity, admit_after, evict)
    owner: dict[int, int] = {}
    seen = Counter()
    for batch in batches:
        seen.update(batch)
        before = dict(owner)
        rows, fresh = index.assign(np.array(batch, np.int64))
        ids, taken = index.entries()
        owner = dict(zip(taken.tolist(), ids.tolist(), strict=True))
        assert len(index) == len(ids) <= capacity and len(set(ids.tolist())) == len(ids)
        assert all(owner.get(row) == each for each, row in zip(batch, rows.tolist(), strict=True) if row >= 0)
        assert {row for row in owner if before.get(row) != owner[row]} == set(fresh.tolist())
        assert all(seen[each] >= admit_after for each in owner.values())
        copy = RowIndex("copy", capacity, admit_after, evict)
        copy.restore_state(index.state())
        again = np.array([[1, 2], [3, 1]], np.int64)
        assert (copy.find(again) == index.find(again)).all() and len(copy) == len(index)


def test_the_least_frequent_goes_and_old_sightings_fade():
    index = RowIndex("i", 2, 1, "lfu")
    for batch in ([1, 1, 1, 1], [2], [3]):
        index.assign(np.array(batch, np.int64))
    assert sorted(index.entries()[0].tolist()) == [1, 3]
    for _ in range(3):
        index.assign(np.array([3, 3], np.int64))
    for other in range(10, 13):
        index.assign(np.array([other], np.int64))
    assert 3 in index.entries()[0] and 1 not in index.entries()[0]


def test_candidates_that_are_rare_are_forgotten():
    index = RowIndex("i", 2, 3, "lru")
    index.assign(np.array([7, 7], np.int64))
    for start in range(100, 100 + 4 * LEAST_CANDIDATES, 64):
        index.assign(np.arange(start, start + 64))
    assert len(index.state()["candidates"]) <= LEAST_CANDIDATES and len(index) == 0


# -- rows ------------------------------------------------------------------------------------------------


def test_unknown_ids_are_zero_and_get_rows_when_they_are_due(session):
    words = table(admit_after=2)
    ids = tf.placeholder(tf.int32, [2, None])
    seen, looked = tf.nn.dynamic_embedding_lookup(words, ids), words.lookup(ids, training=False)
    assert seen.shape.as_list() == [2, None, DIM]
    session.run(tf.global_variables_initializer())
    batch = {ids: [[5, 5, 8], [9, 8, 2]]}
    assert session.run(looked, batch).max() == 0 and session.run(words.size()) == 0
    assert session.run(seen, batch)[..., 0].tolist() == [[1, 1, 1], [0, 1, 0]]
    assert session.run(seen, batch).min() == 1 and session.run(words.size()) == 4
    exported, rows = session.run(words.export())
    assert sorted(exported.tolist()) == [2, 5, 8, 9] and rows.shape == (4, DIM) and rows.min() == 1
    with pytest.raises(InvalidArgumentError, match="id -3 is negative"):
        session.run(seen, {ids: [[1], [-3]]})


OPTIMIZERS = {
    "sgd": (lambda: tf.train.GradientDescentOptimizer(0.1), []),
    "momentum": (lambda: tf.train.MomentumOptimizer(0.1, 0.9), ["momentum"]),
    "adagrad": (lambda: tf.train.AdagradOptimizer(0.1), ["accumulator"]),
    "adam": (lambda: tf.contrib.opt.LazyAdamOptimizer(0.1), ["m", "v"]),
    "rms": (lambda: tf.train.RMSPropOptimizer(0.1), ["rms"]),
    "ftrl": (lambda: tf.train.FtrlOptimizer(0.1), ["accum", "linear"]),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_row_that_changes_its_owner_begins_anew(session, name):
    make, slot_names = OPTIMIZERS[name]
    optimizer, words = make(), table(capacity=2)
    ids = tf.placeholder(tf.int64, [None])
    loss = tf.reduce_sum(tf.square(words.lookup(ids) - 3.0))
    step = optimizer.minimize(loss)
    session.run(tf.global_variables_initializer())
    slots = [optimizer.get_slot(words.rows, slot) for slot in slot_names]
    session.run(step, {ids: [1]})
    (row,) = session.run(row_index_ops.find_rows(words.index, [1]))
    first = session.run([words.rows, *slots])
    for _ in range(3):
        session.run(step, {ids: [1, 2]})
    grown = session.run([words.rows, *slots])
    assert all(not np.allclose(a[row], b[row]) for a, b in zip(first, grown, strict=True))
    session.run(loss, {ids: [2]})
    session.run(loss, {ids: [3]})  # takes the row of 1, in a step that trains nothing
    assert session.run(row_index_ops.find_rows(words.index, [3, 1])).tolist() == [row, -1]
    assert session.run(words.lookup([3], training=False)).tolist() == [[1.0] * DIM]
    session.run(step, {ids: [3]})
    for number, (mine, begun) in enumerate(zip(session.run([words.rows, *slots]), first, strict=True)):
        if number or name != "adam":  # whose correction of the first steps is that of all rows
            np.testing.assert_allclose(mine[row], begun[row], rtol=1e-6)
        # What stands for rows that are not there has stayed as it was.
        np.testing.assert_allclose(mine[-1], begun[-1])


def test_several_tables_and_batches_with_more_ids_than_rows(session):
    tables = [table(f"words_{i}", capacity=3) for i in range(2)]
    ids = tf.placeholder(tf.int64, [None])
    rows = tf.nn.dynamic_embedding_lookup(tables, ids)
    step = tf.train.AdagradOptimizer(0.5).minimize(tf.reduce_mean(tf.square(rows - 2.0)))
    session.run(tf.global_variables_initializer())
    found = session.run(rows, {ids: np.arange(10)})
    assert np.count_nonzero(found[:, 0]) == 6  # three for each table; who comes too late gets none
    assert session.run([table.size() for table in tables]) == [3, 3]
    odd = session.run(tables[1].export()[0])
    assert all(each % 2 for each in odd.tolist())
    for _ in range(200):
        session.run(step, {ids: [1, 2, 3, 4]})
    np.testing.assert_allclose(session.run(rows, {ids: [1, 2, 3, 4]}), 2.0, atol=0.05)
    with pytest.raises(ValueError, match="rows of one size"):
        tf.nn.dynamic_embedding_lookup([tables[0], tf.train.DynamicEmbedding("other", 5, 2)], ids)


def test_a_vocabulary_that_drifts_is_learnt(session):
    """Ids come and go; those of the moment are known."""
    words = table(capacity=40, initializer=None, admit_after=2)
    ids, targets = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
    error = tf.reduce_mean(tf.square(tf.reduce_sum(words.lookup(ids), 1) - targets))
    step = tf.train.AdagradOptimizer(0.5).minimize(error)
    session.run(tf.global_variables_initializer())
    random = np.random.default_rng(0)
    for time in range(400):
        batch = time // 4 + random.integers(0, 20, 30)
        error_now = session.run([step, error], {ids: batch, targets: np.sin(batch)})[1]
    assert error_now < 0.1
    assert session.run(words.size()) == 40


def test_owners_are_saved_with_rows_and_slots(tmp_path):
    def build():
        words = table(admit_after=2, evict="lfu")
        ids = tf.placeholder(tf.int64, [None])
        optimizer = tf.train.AdagradOptimizer(0.5)
        return words, ids, optimizer.minimize(tf.reduce_sum(tf.square(words.lookup(ids) - 3.0)))

    batches = np.random.default_rng(0).integers(0, 12, (12, 5))
    with tf.Graph().as_default(), tf.Session() as session:
        words, ids, step = build()
        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        for number, batch in enumerate(batches):
            if number == 6:
                saver.save(session, str(tmp_path / "model"))
            session.run(step, {ids: batch})
        expected = session.run([*words.export(), *tf.global_variables()])
    with tf.Graph().as_default(), tf.Session() as session:
        words, ids, step = build()
        tf.train.Saver().restore(session, str(tmp_path / "model"))
        for batch in batches[6:]:
            session.run(step, {ids: batch})
        for mine, theirs in zip(session.run([*words.export(), *tf.global_variables()]), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"capacity": 0}, "at least 1"), ({"admit_after": 0}, "at least 1"), ({"evict": "fifo"}, "one of lru, lfu")],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        table(**options)


@pytest.mark.slow
@pytest.mark.ray
def test_tables_live_on_parameter_servers(ray_local):
    jobs = {"ps": tf.JobSpec(2, num_cpus=0.1), "worker": tf.JobSpec(1, num_cpus=0.1)}
    tables = []
    for number in range(2):
        with tf.device(f"/job:ps/task:{number}"):
            tables.append(table(f"words_{number}", capacity=10))
    with tf.device("/job:worker/task:0"):
        ids = tf.placeholder(tf.int64, [None])
        rows = tf.nn.dynamic_embedding_lookup(tables, ids)
        loss = tf.reduce_mean(tf.square(rows - 2.0))
        step = tf.train.AdagradOptimizer(0.5).minimize(loss)
    with tf.Cluster(jobs) as cluster, tf.Session(cluster) as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, step], {ids: [1, 2, 3, 10, 12]})[0] for _ in range(30)]
        assert losses[-1] < 0.1 * losses[0]
        assert session.run([table.size() for table in tables]) == [3, 2]
