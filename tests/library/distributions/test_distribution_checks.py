"""Checks of distributions, their names and what they tell of themselves, as TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tests.support.sessions import run

D = tf.distributions


V = {"validate_args": True}


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (lambda p: D.Normal(0.0, p, **V).mean(), -1.0, "> "),
        (lambda p: D.Normal(0.0, p, **V).log_prob(0.5), [1.0, 0.0], "> "),
        (lambda p: D.Laplace(0.0, p, **V).sample(), -1.0, "> "),
        (lambda p: D.Uniform(p, 0.5, **V).mean(), 0.5, "uniform not defined when low >= high"),
        (lambda p: D.StudentT(p, 0.0, 1.0, **V).mode(), -1.0, "> "),
        (lambda p: D.Gamma(p, 1.0, **V).mean(), -1.0, "> "),
        (lambda p: D.Gamma(1.0, p, **V).mean(), 0.0, "> "),
        (lambda p: D.Gamma(1.0, 1.0, **V).log_prob(p), -1.0, "> "),
        (lambda p: D.Gamma(1.0, 1.0, **V).cdf(p), 0.0, "> "),
        (lambda p: D.Exponential(p, **V).mean(), -1.0, "> "),
        (lambda p: D.Exponential(1.0, **V).prob(p), -1.0, "> "),
        (lambda p: D.Beta(p, 1.0, **V).mean(), -1.0, "Concentration parameter must be positive"),
        (lambda p: D.Beta(1.0, p, **V).mean(), 0.0, "Concentration parameter must be positive"),
        (lambda p: D.Beta(1.0, 1.0, **V).log_prob(p), 1.0, "sample must be less than `1`"),
        (lambda p: D.Beta(1.0, 1.0, **V).log_prob(p), 0.0, "sample must be positive"),
        (lambda p: D.Bernoulli(probs=p, **V).mean(), 1.1, "probs has components greater than 1"),
        (lambda p: D.Bernoulli(probs=p, **V).mean(), -0.1, ">= "),
        (lambda p: D.Bernoulli(probs=0.1, **V).log_prob(p), -1.0, "must be non-negative"),
        (lambda p: D.Bernoulli(probs=0.1, **V).log_prob(p), 0.5, "bool-equivalent"),
        (lambda p: D.Bernoulli(probs=0.1, **V).log_prob(tf.cast(p, tf.int32)), 2.0, "cannot exceed 1"),
        (lambda p: D.Categorical(probs=p, **V).entropy(), [0.1, 0.2], "probs does not sum to 1"),
        (lambda p: D.Categorical(probs=p, **V).entropy(), [-0.1, 1.1], ">= "),
        (lambda p: D.Categorical(probs=[0.5, 0.5], **V).log_prob(p), -1.0, "must be non-negative"),
        (lambda p: D.Categorical(probs=[0.5, 0.5], **V).cdf(p), 0.5, "int32-equivalent"),
        (lambda p: D.Multinomial(p, probs=[0.5, 0.5], **V).mean(), -1.0, "must be non-negative"),
        (lambda p: D.Multinomial(p, probs=[0.5, 0.5], **V).mean(), 1.5, "fractional components"),
        (lambda p: D.Multinomial(2.0, probs=p, **V).mean(), [0.5, 0.6], "probs does not sum to 1"),
        (lambda p: D.Multinomial(2.0, probs=[0.5, 0.5], **V).prob(p), [1.0, 2.0], "counts must sum"),
        (lambda p: D.Multinomial(2.0, probs=[0.5, 0.5], **V).prob(p), [-1.0, 3.0], "must be non-negative"),
        (lambda p: D.Dirichlet(p, **V).mean(), [-1.0, 1.0], "Concentration parameter must be positive"),
        (lambda p: D.Dirichlet([1.0, 1.0], **V).prob(p), [0.5, 0.6], "must sum to `1`"),
        (lambda p: D.Dirichlet([1.0, 1.0], **V).prob(p), [-0.5, 1.5], "samples must be positive"),
        (lambda p: D.DirichletMultinomial(p, [1.0, 1.0], **V).mean(), 1.5, "fractional components"),
        (lambda p: D.DirichletMultinomial(2.0, p, **V).mean(), [-1.0, 1.0], "must be positive"),
        (lambda p: D.DirichletMultinomial(2.0, [1.0, 1.0], **V).prob(p), [1.0, 2.0], "counts"),
        (
            lambda p: tf.contrib.distributions.MultivariateNormalFullCovariance([1.0, 2.0], p, **V).covariance(),
            [[1.0, 0.0], [1.0, 1.0]],
            "not symmetric",
        ),
        (lambda p: D.Gamma(p, 1.0, allow_nan_stats=False).mode(), [0.5, 2.0], "mode not defined"),
        (lambda p: D.Beta(p, 1.5, allow_nan_stats=False).mode(), [0.5, 2.0], "Mode undefined"),
        (lambda p: D.Dirichlet(p, allow_nan_stats=False).mode(), [0.5, 2.0], "Mode undefined"),
        (lambda p: D.StudentT(p, 0.0, 1.0, allow_nan_stats=False).mean(), [0.5, 2.0], "mean not defined"),
        (lambda p: D.StudentT(p, 0.0, 1.0, allow_nan_stats=False).variance(), [0.5, 2.0], "variance not defined"),
        (
            lambda p: D.kl_divergence(D.Normal(p, 1.0), D.Normal(0.0, 1.0), allow_nan_stats=False),
            np.nan,
            "returned NaN values",
        ),
    ],
)
def test_what_is_wrong_is_said(make, parameters, message, fed):
    """Of constants at once, or when the step runs; of fed values when the step runs."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(make(tf.placeholder_with_default(np.float32(parameters), np.shape(parameters)) if fed else parameters))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: D.Normal(0, 1), ValueError),
        (lambda: D.Normal(np.float64(0), np.float32(1)), ValueError),
        (lambda: D.Normal([0.0, 1.0], [1.0, 2.0, 3.0]).mean(), ValueError),
        (lambda: D.Gamma(1.0, 1.0).log_prob(tf.constant(1.0, tf.float64)), ValueError),
        (lambda: D.Exponential(1), ValueError),
        (lambda: D.Bernoulli(), ValueError),
        (lambda: D.Bernoulli(1.0, 0.5), ValueError),
        (lambda: D.Bernoulli(probs=1), TypeError),
        (lambda: D.Categorical(logits=1.0), ValueError),
        (lambda: D.Categorical(probs=[1.0], **V), ValueError),
        (lambda: D.Categorical(probs=[0.5, 0.5]).mean(), NotImplementedError),
        (lambda: D.Multinomial(2.0, probs=[1.0], **V), ValueError),
        (lambda: D.Dirichlet([1.0], **V), tf.errors.InvalidArgumentError),
        (lambda: D.DirichletMultinomial(2.0, [1.0], **V), ValueError),
        (lambda: D.DirichletMultinomial(2.0, [1.0, 1.0]).mode(), NotImplementedError),
        (lambda: D.Normal(0.0, 1.0).sample([[1]]), ValueError),
        (lambda: D.RegisterKL(D.Normal, D.Gamma)(3), TypeError),
        (lambda: D.Normal.param_static_shapes(tf.TensorShape(None)), ValueError),
        (lambda: D.Categorical.param_static_shapes([2]), NotImplementedError),
        (lambda: D.Distribution(tf.float32, D.NOT_REPARAMETERIZED, False, True, graph_parents=[None]), ValueError),
    ],
)
def test_kinds_of_errors_while_building(make, kind):
    with pytest.raises(kind):
        make()


def test_classes_of_unknown_number():
    given = tf.placeholder_with_default(np.float32([1.0]), [None])
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least"):
        run(D.Categorical(logits=given, **V).mode())


@pytest.mark.parametrize("label", [2, -1])
def test_a_class_that_does_not_exist_is_an_error(label):
    with tf.device("/cpu:0"), pytest.raises(tf.errors.InvalidArgumentError):  # a GPU checks no labels
        run(D.Categorical(probs=[0.5, 0.5]).log_prob(label))


def test_statistics_that_are_not_defined_are_nan():
    gamma, student = D.Gamma([0.5, 2.0], 1.0), D.StudentT([0.5, 1.5, 3.0], 0.0, 1.0)
    mode, mean, variance = run([gamma.mode(), student.mean(), student.variance()])
    np.testing.assert_array_equal(mode, [np.nan, 1])
    np.testing.assert_array_equal(mean, [np.nan, 0, 0])
    np.testing.assert_array_equal(variance, [np.nan, np.inf, 3])


# -- what a distribution tells of itself ---------------------------------------------------------------


def test_names_and_descriptions():
    first, second = D.Normal(0.0, [1.0, 2.0]), D.Normal(0.0, 1.0)
    assert (first.name, second.name) == ("Normal/", "Normal_1/")
    assert str(first) == 'tfp.distributions.Normal("Normal/", batch_shape=(2,), event_shape=(), dtype=float32)'
    assert repr(second) == "<tfp.distributions.Normal 'Normal_1/' batch_shape=() event_shape=() dtype=float32>"
    assert first.loc.op.name == "Normal/loc"
    assert first.log_prob(0.5).op.name.startswith("Normal/log_prob/")
    assert first.log_prob(0.5).op.name.startswith("Normal/log_prob_1/")
    with tf.name_scope("outer"):
        assert second.mean().op.name.startswith("Normal_1/mean/")


def test_parameters_and_copies():
    first = D.Normal(0.0, 1.0, validate_args=True)
    assert first.parameters == {
        "loc": 0.0,
        "scale": 1.0,
        "validate_args": True,
        "allow_nan_stats": True,
        "name": "Normal",
    }
    second = first.copy(loc=[1.0, 2.0], allow_nan_stats=False)
    assert type(second) is D.Normal and second.batch_shape == [2]
    assert (second.validate_args, second.allow_nan_stats, first.allow_nan_stats) == (True, False, True)
    assert D.Exponential(2.0).copy().parameters["rate"] == 2.0


def test_shapes_of_parameters():
    assert D.Normal.param_static_shapes([2, 3]) == {"loc": tf.TensorShape([2, 3]), "scale": tf.TensorShape([2, 3])}
    assert list(D.Exponential.param_static_shapes(tf.TensorShape([2]))) == ["rate"]
    assert run(D.Bernoulli.param_shapes([4])["logits"]).tolist() == [4]


def test_whether_batches_and_events_are_scalars():
    unknown = tf.placeholder_with_default(np.zeros((2, 1), np.float32), None)
    makers = [D.Normal(0.0, 1.0), D.Normal([0.0], 1.0), D.Dirichlet([1.0, 1.0]), D.Normal(unknown, 1.0)]
    found = run([[mine.is_scalar_batch(), mine.is_scalar_event()] for mine in makers])
    assert found == [[True, True], [False, True], [True, False], [False, True]]


@pytest.mark.parametrize("sample_shape", [(), 3, [2], [2, 3], [0], np.zeros(0, np.int32)])
def test_shapes_of_samples(sample_shape):
    count = np.atleast_1d(np.array(sample_shape, int)).tolist() if np.size(sample_shape) else []
    unknown = tf.placeholder_with_default(np.array(sample_shape, np.int32), None)
    for mine in (D.Normal([[0.0]], [1.0, 2.0]), D.Dirichlet([[1.0, 1.0]]), D.Multinomial(2.0, [[1.0, 1.0]])):
        shape = [*count, *mine.batch_shape.as_list(), *mine.event_shape.as_list()]
        samples = mine.sample(sample_shape, seed=1)
        assert samples.shape == shape
        assert [value.shape for value in run([samples, mine.sample(unknown)])] == [tuple(shape)] * 2


def test_same_seeds_give_the_same_samples():
    def draw(seed):
        with tf.Graph().as_default():
            return run([D.Beta(2.0, 3.0).sample(3, seed=seed), D.StudentT(3.0, 0.0, 1.0).sample(3, seed=seed)])

    np.testing.assert_array_equal(draw(1), draw(1))
    assert (np.array(draw(1)) != draw(2)).all()


# -- one's own -----------------------------------------------------------------------------------------


class Shifted(D.Distribution):
    """The standard exponential distribution from `start` on."""

    def __init__(self, start, name="Shifted"):
        self.start = tf.convert_to_tensor(start)
        super().__init__(
            tf.float32, D.FULLY_REPARAMETERIZED, False, True, {"start": start, "name": name}, [self.start], name
        )

    def _batch_shape(self):
        return self.start.shape

    def _batch_shape_tensor(self):
        return tf.shape(self.start)

    def _event_shape(self):
        return tf.TensorShape([])

    def _sample_n(self, n, seed=None):
        return self.start + tf.random_uniform(tf.concat([[n], self.batch_shape_tensor()], 0), seed=seed)

    def _prob(self, value):
        return tf.exp(self.start - value)

    def _log_cdf(self, value):
        return tf.log1p(-tf.exp(self.start - value))

    def _variance(self):
        return 4 * tf.ones_like(self.start)


@pytest.mark.parametrize(
    "name, plain, parameters, transformed",
    [
        ("BetaWithSoftplusConcentration", D.Beta, (-4.2, -9.1), "concentration1 concentration0"),
        ("ExponentialWithSoftplusRate", D.Exponential, (-2.2,), "rate"),
        ("GammaWithSoftplusConcentrationRate", D.Gamma, (-4.2, -9.1), "concentration rate"),
        ("LaplaceWithSoftplusScale", D.Laplace, (1.5, -2.2), "scale"),
        ("NormalWithSoftplusScale", D.Normal, (1.5, -2.2), "scale"),
        ("StudentTWithAbsDfSoftplusScale", D.StudentT, (-3.5, 1.5, -2.2), "scale"),
    ],
)
def test_parameters_of_any_sign(name, plain, parameters, transformed):
    made = getattr(tf.contrib.distributions, name)(*parameters, validate_args=True)
    assert isinstance(made, plain) and made.name == f"{name}/"
    for given, attribute in zip(reversed(parameters), reversed(transformed.split()), strict=False):
        np.testing.assert_allclose(run(getattr(made, attribute)), np.log1p(np.exp(given)), rtol=1e-5)
    if plain is D.StudentT:
        assert run(made.df) == 3
    assert list(made.copy().parameters.values())[: len(parameters)] == list(parameters)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_gradients_of_quantiles_are_finite(dtype):
    p = tf.constant([0.0, np.exp(-32.0), 0.3, 1 - np.exp(-32.0), 1.0], dtype)
    mean = tf.constant(0.0, dtype)
    quantile = D.Normal(mean, tf.constant(1.0, dtype)).quantile(p)
    slopes = run(tf.gradients(quantile, [mean, p]))
    assert np.isfinite(slopes[0]) and np.isfinite(slopes[1]).all() and slopes[1][0] == slopes[1][-1] == 0
    found = run(quantile)
    assert found[0] == -np.inf and found[-1] == np.inf
    np.testing.assert_allclose(found[2], -0.524400512708, rtol=1e-6)


def test_what_follows_from_the_methods_of_a_subclass():
    mine = Shifted([1.0, 2.0])
    found = run([mine.log_prob(3.0), mine.cdf(3.0), mine.survival_function(3.0), mine.stddev(), mine.sample([3, 4])])
    tails = np.exp([-2.0, -1.0])
    for value, expected in zip(found, [[-2, -1], 1 - tails, tails, [2, 2]], strict=False):
        np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert found[-1].shape == (3, 4, 2) and mine.copy(start=1.0).batch_shape == []
    with pytest.raises(NotImplementedError, match="quantile is not implemented: Shifted"):
        mine.quantile(0.5)


def test_divergences_are_found_by_the_nearest_classes():
    class First(D.Normal):
        pass

    class Second(First):
        pass

    D.RegisterKL(First, D.Normal)(lambda a, b, name=None: tf.constant(1.0))
    one = Second(0.0, 1.0)
    assert run(D.kl_divergence(one, D.Normal(0.0, 1.0))) == 1
    assert run(D.kl_divergence(D.Normal(0.0, 1.0), one)) == 0
    # TensorFlow has none for this pair: a program may bring its own.
    D.RegisterKL(D.Laplace, First)(lambda a, b, name=None: tf.constant(2.0))
    assert run(D.Laplace(0.0, 1.0).kl_divergence(one)) == 2
