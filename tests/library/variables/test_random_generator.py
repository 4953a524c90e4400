"""``tf.random.experimental``: generators whose state is a variable."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tfray as tf

E = tf.random.experimental


def draw(session, *results, count=1):
    session.run(tf.global_variables_initializer())
    return [session.run(list(results)) for _ in range(count)]


def test_each_step_draws_new_numbers_and_a_seed_begins_anew(session):
    generator, other = E.Generator.from_seed(7), E.Generator.from_seed(7)
    first, second = draw(session, generator.normal([4]), other.normal([4]), count=2)
    np.testing.assert_array_equal(first[0], first[1])
    assert (np.array(first[0]) != second[0]).all()
    session.run(generator.reset_from_seed(7))
    np.testing.assert_array_equal(session.run(generator.normal([4])), first[0])
    assert [variable.trainable for variable in tf.global_variables()] == [False, False]


def test_results_of_one_step_differ(session):
    generator = E.Generator.from_seed(1)
    ((first, second),) = draw(session, generator.uniform([100]), generator.uniform([100]))
    assert (first != second).all()


@pytest.mark.parametrize(
    ("build", "distribution"),
    [
        (lambda g: g.normal([5000], 2.0, 3.0), stats.norm(2, 3)),
        (lambda g: g.truncated_normal([5000], dtype=tf.float64), stats.truncnorm(-2, 2)),
        (lambda g: g.uniform([5000], -1.0, 3.0), stats.uniform(-1, 4)),
        (lambda g: tf.cast(g.uniform_full_int([5000]), tf.float64), stats.uniform(0, 2.0**64)),
        (lambda g: tf.cast(g.uniform_full_int([5000], tf.int32), tf.float64), stats.uniform(-(2.0**31), 2.0**32)),
    ],
)
def test_distributions(session, build, distribution):
    ((numbers,),) = draw(session, build(E.Generator.from_seed(3)))
    assert numbers.shape == (5000,) and stats.kstest(numbers, distribution.cdf).pvalue > 1e-3


def test_skipping_is_as_drawing(session):
    generator, other = E.Generator.from_seed(7, alg=2), E.Generator.from_seed(7, alg=2)
    drawn, skipped = generator.uniform([3, 5]), other.skip(15)
    session.run(tf.global_variables_initializer())
    session.run([drawn, skipped])
    np.testing.assert_array_equal(*session.run([generator.state, other.state]))
    np.testing.assert_array_equal(*session.run([generator.normal([2]), other.normal([2])]))


def test_states_keys_and_copies(session):
    assert E.create_rng_state(5, 1).tolist() == [0, 0, 5] and E.create_rng_state(-1, 2).tolist() == [0, -1]
    made = E.Generator.from_key_counter(key=9, counter=[3, 4], alg=1)
    copied, restored = E.Generator(copy_from=made), E.Generator.from_state([3, 4, 9], alg=1)
    ((key, *numbers),) = draw(session, made.key, *(each.normal([3]) for each in (made, copied, restored)))
    assert key == 9
    np.testing.assert_array_equal(numbers[0], numbers[1])
    np.testing.assert_array_equal(numbers[0], numbers[2])
    assert made.make_seeds(4).shape == [2, 4]


def test_the_global_generator(session):
    generator = E.get_global_generator()
    assert E.get_global_generator() is generator
    mine = E.Generator.from_seed(1)
    E.set_global_generator(mine)
    assert E.get_global_generator() is mine
    with tf.Graph().as_default():
        assert E.get_global_generator() is not mine


def test_what_generators_refuse(session):
    for call in (
        lambda: E.create_rng_state(1, 3),
        lambda: E.create_rng_state([1, 2, 3], 2),
        lambda: E.Generator(alg=1),
        lambda: E.Generator(copy_from=E.Generator.from_seed(1), alg=1),
        lambda: E.Generator.from_state([1, 2], alg=1),
        lambda: E.Generator.from_seed(1).uniform([2], dtype=tf.int32),
        lambda: E.Generator.from_seed(1).uniform_full_int([2], tf.float32),
    ):
        with pytest.raises(ValueError):
            call()


def test_counts_of_successes(session):
    """Row by row: the numbers of trials and the probabilities belong to the first dimension."""
    generator = E.Generator.from_seed(11)
    drawn = generator.binomial([2, 4000], [10, 20.0], [0.8, 0.1])
    assert drawn.dtype == tf.int32 and drawn.shape == [2, 4000]
    ((first,), (second,)) = draw(session, drawn, count=2)
    for row, count, probability in zip(first, (10, 20), (0.8, 0.1), strict=True):
        observed = np.bincount(row, minlength=count + 1)
        expected = 4000 * stats.binom(count, probability).pmf(np.arange(count + 1))
        often = expected >= 5
        observed, expected = (np.append(each[often], each[~often].sum()) for each in (observed, expected))
        assert stats.chisquare(observed, expected).pvalue > 1e-4
    assert (first != second).any()


def test_probabilities_of_successes_are_checked(session):
    generator = E.Generator.from_seed(11)
    drawn = generator.binomial([3], 4, 1.5)
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"probabilities in \[0, 1\]"):
        session.run(drawn)


def test_generators_that_are_split_off_are_independent(session):
    generator = E.Generator.from_seed(5)
    parts = [*generator.split(2), *generator.split(1)]
    results = [each.normal([50]) for each in (generator, *parts)]
    session.run(generator.state.initializer)
    for part in parts:
        session.run(part.state.initializer)
    values = session.run(results)
    assert len({tuple(value) for value in values}) == 4
    assert np.abs(np.corrcoef(values) - np.eye(4)).max() < 0.6
