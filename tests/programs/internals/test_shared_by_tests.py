"""What TensorFlow's own tests share: checks of samples, folded graphs, state for Savers, sets by identity."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from scipy import stats

import tfray as tf
from tfray.programs.internals import folded_graphs, identity, random_tests
from tfray.programs.internals.saver_tests import CheckpointedOp


def test_samples_are_compared_with_their_distribution():
    samples = np.random.default_rng(0).normal(size=20_000)
    assert max(random_tests.test_moment_matching(samples, 4, stats.norm(), stride=1)) < 4
    assert max(random_tests.test_moment_matching(samples + 0.1, 2, stats.norm())) > 10
    assert random_tests.normal_cdf([-1.0, 0.0, 2.0]) == pytest.approx(stats.norm.cdf([-1, 0, 2]))
    known = {"loc": 0, "scale": 1}
    fit = stats.goodness_of_fit(stats.norm, samples, known_params=known, statistic="ad", n_mc_samples=1)
    assert random_tests.anderson_darling(samples) == pytest.approx(fit.statistic)
    uniform = np.random.default_rng(1).random(1000)
    counts = np.histogram(uniform, 10, (0, 1))[0]
    assert random_tests.chi_squared(uniform, 10) == pytest.approx(stats.chisquare(counts).statistic)


def test_samples_of_a_truncated_normal_distribution():
    middle = (np.arange(100_000) + 0.5) / 100_000
    samples = stats.truncnorm(-2, 2).ppf(middle)
    checks = np.testing.assert_equal, np.testing.assert_allclose
    random_tests.test_truncated_normal(*checks, samples.size, samples)
    with pytest.raises(AssertionError):
        random_tests.test_truncated_normal(*checks, samples.size, samples * 0.9)


def test_what_never_changes_becomes_a_constant():
    x = tf.placeholder(tf.float32, [2], name="x")
    scale = tf.exp([0.0, 1.0], name="scale") * 2
    tf.multiply(x, scale, name="unused")
    y = tf.add(x * scale, tf.random.uniform([2], seed=1), name="y")
    made = folded_graphs.grappler_optimize(tf.get_default_graph(), [y])
    assert {node.op for node in made.node} >= {"Placeholder", "Const"}
    assert not any(node.op in ("Exp", "unused") for node in made.node)
    with tf.Graph().as_default():
        again = tf.import_graph_def(made, return_elements=["y:0"], name="")
        with tf.Session() as session:
            found = session.run(again[0], {"x:0": [1.0, 1.0]})
    assert (found - [2, 2 * np.e] < 1).all()
    assert (found - [2, 2 * np.e] >= 0).all()
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="no fetches"):
        folded_graphs.OptimizeGraph(tf.ConfigProto(), tf.train.export_meta_graph())
    with pytest.raises(TypeError, match="ConfigProto"):
        folded_graphs.OptimizeGraph(None, tf.train.export_meta_graph())


def test_a_table_that_savers_save(tmp_path):
    table = CheckpointedOp("entries")
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(table.insert(["a", "b"], [1.0, 2.0]))
        path = saver.save(session, str(tmp_path / "model"))
        session.run(table.insert(["a"], [9.0]))
        saver.restore(session, path)
        assert session.run(table.lookup(["a", "c"], 7.0)).tolist() == [1.0, 7.0]
        assert sorted(session.run(table.keys())) == [b"a", b"b"]
        assert sorted(session.run(CheckpointedOp("same", table.table_ref).values())) == [1.0, 2.0]


def test_sets_and_dictionaries_by_identity():
    first, second = [1], [1]
    found = identity.ObjectIdentitySet([first])
    assert first in found
    assert second not in found
    found.update([second, first])
    assert len(found) == 2
    assert list(found.difference([first])) == [second]
    assert found.intersection([first]) == {identity.Reference(first)}
    found.discard(second)
    assert [id(each) for each in found] == [id(first)]
    table = identity.ObjectIdentityDictionary()
    table[first], table[second] = "first", "second"
    assert (table[first], table[second], len(table)) == ("first", "second", 2)
    del table[first]
    assert first not in table
    with pytest.raises(KeyError):
        table[first]
    with pytest.raises(TypeError, match="unwrapped"):
        identity.Reference(first) == first  # noqa: B015 (comparing is what raises)


def test_weak_sets_and_dictionaries_forget():
    class Thing:
        pass

    kept, lost = Thing(), Thing()
    found, table = identity.ObjectIdentityWeakSet([kept, lost]), identity.ObjectIdentityWeakKeyDictionary()
    table[kept], table[lost] = 1, 2
    del lost
    gc.collect()
    assert list(found) == [kept]
    assert dict(table.items()) == {kept: 1}
