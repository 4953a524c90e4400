"""Maps of tensors: their inverses, and determinants against those of Jacobians by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tfray as tf
from tests.support.sessions import run
from tfray.library.distributions.vector_bijectors import fill_triangular, fill_triangular_inverse

B = tf.contrib.distributions.bijectors
D = tf.contrib.distributions
RANDOM = np.random.default_rng(1)
ANY = RANDOM.normal(size=(2, 3))
SHARES = RANDOM.uniform(0.1, 0.9, size=(2, 3))
POSITIVE = RANDOM.uniform(0.2, 3.0, size=(2, 3))
GROWING = np.cumsum(POSITIVE, -1)
TRIL = np.tril(RANDOM.normal(size=(3, 3))) + 2 * np.eye(3)
FACTOR = RANDOM.normal(size=(3, 2))
TRIANGLES = np.tril(RANDOM.uniform(0.3, 2.0, size=(2, 3, 3)))
W = np.float64


def shift_and_log_scale(x, size):
    total = tf.reduce_sum(x, -1, keepdims=True) + tf.zeros([size], tf.float64)
    return total, tf.tanh(total)


MAPS = {
    "identity": (B.Identity, ANY),
    "exp": (B.Exp, ANY),
    "power 0": (B.PowerTransform, ANY),
    "power": (lambda: B.PowerTransform(0.4), POSITIVE),
    "sigmoid": (B.Sigmoid, ANY),
    "softplus": (B.Softplus, ANY),
    "soft hinge": (lambda: B.Softplus(W(2.5)), ANY),
    "softsign": (B.Softsign, ANY),
    "square": (B.Square, POSITIVE),
    "gumbel": (lambda: B.Gumbel(W(0.5), W(2.0)), ANY),
    "weibull": (lambda: B.Weibull(W(1.5), W(2.0)), POSITIVE),
    "kumaraswamy": (lambda: B.Kumaraswamy(W(1.5), W(2.0)), SHARES),
    "sinh arcsinh": (lambda: B.SinhArcsinh(W(0.5), W(0.8)), ANY),
    "affine scalar": (lambda: B.AffineScalar(W(0.5), W(-2.0)), ANY),
    "scale": (lambda: B.AffineScalar(scale=np.array([1.0, -2.0, 3.0])), ANY),
    "shift": (lambda: B.AffineScalar(shift=W(0.5)), ANY),
    "affine shift": (lambda: B.Affine(np.arange(3.0)), ANY),
    "affine multiplier": (lambda: B.Affine(scale_identity_multiplier=W(-2.0)), ANY),
    "affine diagonal": (lambda: B.Affine(np.arange(3.0), W(0.5), np.array([1.0, -2.0, 3.0])), ANY),
    "affine triangle": (lambda: B.Affine(np.arange(3.0), scale_tril=TRIL), ANY),
    "affine of parts": (lambda: B.Affine(None, W(0.5), np.ones(3), TRIL, FACTOR, np.array([1.0, 2.0])), ANY),
    "affine low rank": (lambda: B.Affine(scale_diag=np.ones(3), scale_perturb_factor=FACTOR), ANY),
    "permute": (lambda: B.Permute([2, 0, 1]), ANY),
    "reshape": (lambda: B.Reshape([3, 1]), ANY),
    "softmax centered": (B.SoftmaxCentered, ANY),
    "ordered": (B.Ordered, GROWING),
    "inverted": (lambda: B.Invert(B.Softplus()), POSITIVE),
    "inverted vectors": (lambda: B.Invert(B.Ordered()), ANY),
    "chain": (lambda: B.Chain([B.Exp(), B.AffineScalar(W(1.0), W(0.5)), B.Softsign()]), ANY),
    "chain of ranks": (lambda: B.Chain([B.Exp(), B.Affine(scale_tril=TRIL), B.AffineScalar(scale=W(3.0))]), ANY),
    "empty chain": (B.Chain, ANY),
    "inline": (
        lambda: B.Inline(tf.exp, tf.log, inverse_log_det_jacobian_fn=lambda y: -tf.log(y), forward_min_event_ndims=0),
        ANY,
    ),
    "flow": (lambda: B.RealNVP(1, shift_and_log_scale), ANY),
}
MATRICES = {
    "cholesky": (B.CholeskyOuterProduct, TRIANGLES),
    "inverse": (B.MatrixInverseTriL, TRIANGLES),
    "diagonal": (lambda: B.TransformDiagonal(B.Exp()), TRIANGLES),
    "fill": (B.FillTriangular, RANDOM.normal(size=(2, 6))),
    "fill upper": (lambda: B.FillTriangular(upper=True), RANDOM.normal(size=(2, 6))),
    "scale of vectors": (lambda: B.ScaleTriL(diag_shift=W(1e-5)), RANDOM.normal(size=(2, 6))),
}
ROWS, COLUMNS = np.tril_indices(3)


def jacobian(function, x, take):
    """Derivatives of `take(function(x))` by the free numbers of one event."""
    columns = []
    for place in zip(ROWS, COLUMNS, strict=True) if x.shape == (3, 3) else np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        columns.append((take(function(x + step)) - take(function(x - step))) / 2e-6)
    return np.stack(columns, -1)


@pytest.mark.parametrize("name", [*MAPS, *MATRICES])
def test_a_map_its_inverse_and_its_determinants(name):
    build, x = {**MAPS, **MATRICES}[name]
    mine = build()
    ndims = x.ndim - 1
    there = ndims + mine.inverse_min_event_ndims - mine.forward_min_event_ndims
    image = mine.forward(x)
    assert mine.forward_event_shape(x.shape) == image.shape
    assert mine.inverse_event_shape(image.shape) == x.shape
    y, sizes, back = run(
        [image, mine.forward_event_shape_tensor(x.shape[1:]), mine.inverse_event_shape_tensor(image.shape[1:])]
    )
    assert (tuple(sizes), tuple(back)) == (y.shape[1:], x.shape[1:])
    found, forwards, backwards = run(
        [mine.inverse(y), mine.forward_log_det_jacobian(x, ndims), mine.inverse_log_det_jacobian(y, there)]
    )
    np.testing.assert_allclose(found, x, rtol=1e-6, atol=1e-9)
    feed = tf.placeholder(tf.float64, x.shape[1:])
    moved = build().forward(feed)

    def take(values):
        if name in ("softmax centered",):
            return values[:-1]
        if name == "fill upper":
            return values[np.triu_indices(3)]
        return values[ROWS, COLUMNS] if values.shape == (3, 3) else values.ravel()

    with tf.Session() as session:
        for i, row in enumerate(x):
            derivatives = jacobian(lambda value: session.run(moved, {feed: value}), row, take)
            expected = np.linalg.slogdet(derivatives)[1]
            np.testing.assert_allclose(np.broadcast_to(forwards, 2)[i], expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(np.broadcast_to(backwards, 2)[i], -expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MAPS)
def test_events_of_unknown_sizes(name):
    build, x = MAPS[name]
    if name == "flow":  # it has to know how long vectors are
        return
    feed = tf.placeholder(tf.float64, [None] * x.ndim)
    mine = build()
    known = build()
    found = run([mine.inverse(mine.forward(feed) * 1.0), mine.forward_log_det_jacobian(feed, 1)], {feed: x})
    np.testing.assert_allclose(found[0], x, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found[1], run(known.forward_log_det_jacobian(x, 1)), rtol=1e-9)


def test_what_was_mapped_is_known():
    mine = B.Exp()
    x = tf.constant(ANY)
    assert mine.inverse(mine.forward(x)) is x
    y = tf.constant(POSITIVE)
    assert mine.forward(mine.inverse(y)) is y
    inside = tf.cond(tf.constant(True), lambda: mine.forward(y), lambda: y)
    outside = mine.forward(y + 0.0)
    np.testing.assert_allclose(*run([inside, tf.maximum(outside, 0.0)])[::-1])


def test_larger_events():
    np.testing.assert_allclose(run(B.Exp().forward_log_det_jacobian(ANY, 2)), ANY.sum())
    np.testing.assert_allclose(run(B.AffineScalar(scale=W(2.0)).inverse_log_det_jacobian(ANY, 2)), -6 * np.log(2))
    assert run(B.Exp().forward_log_det_jacobian(ANY, 0)).shape == (2, 3)
    assert (B.Chain([B.Exp(), B.SoftmaxCentered()]).forward_min_event_ndims) == 1
    triangles = B.Chain([B.CholeskyOuterProduct(), B.ScaleTriL()])
    assert (triangles.forward_min_event_ndims, triangles.inverse_min_event_ndims) == (1, 2)
    assert triangles.name == "chain_of_cholesky_outer_product_of_scale_tril"


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("upper", [False, True])
def test_triangles(size, upper):
    x = np.arange(1.0, 2 * size * (size + 1) // 2 + 1).reshape(2, -1)
    feed = tf.placeholder(tf.float64, [None, None])
    filled, unknown = run([fill_triangular(x, upper), fill_triangular(feed, upper)], {feed: x})
    assert (filled == unknown).all() and (filled == (np.triu if upper else np.tril)(filled)).all()
    assert run(fill_triangular_inverse(filled, upper)).tolist() == x.tolist()
    if size == 3:
        first = [[1, 2, 3], [0, 5, 6], [0, 0, 4]] if upper else [[4, 0, 0], [6, 5, 0], [3, 2, 1]]
        assert filled[0].tolist() == first
    feed = tf.placeholder(tf.float64, [None, None, None])
    assert run(fill_triangular_inverse(feed, upper), {feed: filled}).tolist() == x.tolist()
    doubled = run(D.matrix_diag_transform(filled, lambda diagonal: 2 * diagonal))
    np.testing.assert_allclose(doubled, filled + np.eye(size) * filled)


class Custom(B.Bijector):
    """A map of one's own that says nothing of itself."""


class Doubled(B.Bijector):
    def __init__(self, only):
        super().__init__(forward_min_event_ndims=0, validate_args=True)
        self.only = only

    def _forward(self, x):
        assert self.only == "forward"
        return x * 2

    def _inverse(self, y):
        assert self.only == "inverse"
        return y / 2

    def _forward_log_det_jacobian(self, x):
        assert self.only == "forward"
        return tf.log(x * 0 + 2)

    def _inverse_log_det_jacobian(self, y):
        assert self.only == "inverse"
        return -tf.log(y * 0 + 2)


@pytest.mark.parametrize("way", ["forward", "inverse"])
def test_what_one_way_gave_the_other_takes(way):
    bijector, at = Doubled(way), tf.constant(1.5)
    back = {"forward": "inverse", "inverse": "forward"}[way]
    there = getattr(bijector, way)(at)
    known = getattr(bijector, f"{way}_log_det_jacobian")(at, 0)
    assert getattr(bijector, back)(there) is at
    negative = getattr(bijector, f"{back}_log_det_jacobian")(there, 0)
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run([known, -negative]))
    with pytest.raises(AssertionError):
        getattr(bijector, f"{back}_log_det_jacobian")(there, 1)


def test_a_bijector_has_the_name_of_its_class():
    assert (Custom(forward_min_event_ndims=0).name, Doubled("forward").name) == ("custom", "doubled")
    assert type("_BareBones", (B.Bijector,), {})(forward_min_event_ndims=0).name == "bare_bones"


def test_the_rank_of_event_ndims_is_checked_in_a_step():
    event_ndims = tf.placeholder(tf.int32)
    log_det = Doubled("forward").forward_log_det_jacobian(tf.constant(1.5), event_ndims)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Expected scalar"):
        session.run(log_det, {event_ndims: (1, 2)})


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: B.Bijector(forward_min_event_ndims=0), TypeError, "abstract class"),
        (lambda: Custom(), ValueError, "at least one of"),
        (lambda: B.Exp().inverse_log_det_jacobian(ANY, 1.5), ValueError, "Expected integer"),
        (lambda: B.Exp().inverse_log_det_jacobian(ANY, (1, 2)), ValueError, "Expected scalar"),
        (lambda: Custom(forward_min_event_ndims=-1), ValueError, "non-negative"),
        (lambda: B.Ordered().forward_log_det_jacobian(ANY, 0), ValueError, "must be larger than min_event_ndims"),
        (lambda: B.Exp().forward_log_det_jacobian(ANY, 0.5), ValueError, "event_ndims"),
        (lambda: B.AbsoluteValue().forward_log_det_jacobian(ANY, 0), NotImplementedError, "non-injective"),
        (lambda: B.Chain([B.Exp(), B.AbsoluteValue()]), NotImplementedError, "Chain .* non-injective"),
        (lambda: B.Invert(B.AbsoluteValue()), NotImplementedError, "Invert .* non-injective"),
        (
            lambda: Custom(dtype=tf.float32, forward_min_event_ndims=0).forward(tf.constant(W(1))),
            TypeError,
            "dtype",
        ),
        (lambda: B.Inline(forward_min_event_ndims=0).forward(1.0), NotImplementedError, "forward not implemented"),
        (
            lambda: B.Inline(inverse_fn=tf.log, forward_min_event_ndims=0).inverse_log_det_jacobian(1.0, 0),
            NotImplementedError,
            "inverse_log_det_jacobian not implemented",
        ),
        (lambda: B.PowerTransform(-1.0), ValueError, "non-negative"),
        (lambda: B.Permute([1.5]), TypeError, "int"),
        (lambda: B.Permute([0, 2]), ValueError, "exactly one of each"),
        (
            lambda: B.Reshape([2, -3], validate_args=True),
            tf.errors.InvalidArgumentError,
            "elements must be either positive integers or `-1`",
        ),
        (lambda: B.Reshape([[2]]), ValueError, "rank should be 1"),
        (lambda: B.Reshape([2.5]), TypeError, "int"),
        (lambda: B.Reshape([2, 2], [4]).forward(ANY), ValueError, "does not match `event_shape_in`"),
        (lambda: B.Reshape([4, -1]).forward_event_shape([6]), ValueError, "Cannot reshape a tensor with 6"),
        (lambda: B.Affine(scale_perturb_diag=[1.0]), ValueError, "scale_perturb_factor must be"),
        (lambda: B.FillTriangular().forward_event_shape([5]), ValueError, "is not a triangular number"),
        (lambda: B.FillTriangular().inverse_event_shape([2, 3]), ValueError, "square"),
        (lambda: B.SoftmaxCentered().inverse_event_shape([1]), ValueError, "too few"),
        (lambda: B.RealNVP(0, shift_and_log_scale), ValueError, "positive"),
        (lambda: B.RealNVP(3, shift_and_log_scale).forward(ANY), ValueError, "expected more than 3"),
        (
            lambda: B.Chain([Custom(dtype=kind, forward_min_event_ndims=0) for kind in ("float32", "float64")]),
            ValueError,
            "incompatible",
        ),
    ],
)
def test_what_is_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: B.Ordered(validate_args=True).forward([2.0, 1.0]),
        lambda: B.Exp(validate_args=True).inverse(-1.0),
        lambda: B.Permute(tf.placeholder_with_default([1, 2], None), validate_args=True).forward([1.0]),
        lambda: B.Square(validate_args=True).forward(-1.0),
        lambda: B.Softsign(validate_args=True).inverse(2.0),
        lambda: B.AffineScalar(scale=tf.zeros([2]), validate_args=True).forward([1.0, 1.0]),
        lambda: B.Affine(scale_diag=tf.zeros([2]), validate_args=True).forward([1.0, 1.0]),
        lambda: B.Gumbel(scale=-1.0, validate_args=True).forward(1.0),
        lambda: B.Weibull(validate_args=True).forward(-1.0),
        lambda: B.PowerTransform(0.5, validate_args=True).forward(-3.0),
        lambda: B.CholeskyOuterProduct(validate_args=True).forward([[-1.0]]),
        lambda: B.MatrixInverseTriL(validate_args=True).forward([[0.0]]),
        lambda: B.Softplus(0.0, validate_args=True).forward(1.0),
        lambda: B.Reshape(tf.placeholder_with_default([-1, -1], [2]), validate_args=True).forward(ANY),
        lambda: B.Reshape(tf.placeholder_with_default([1, -2], None), validate_args=True).forward(ANY),
        lambda: B.Reshape([6], tf.placeholder_with_default([3, 2], [2]), validate_args=True).forward(ANY),
        lambda: B.AbsoluteValue(validate_args=True).inverse(-1.0)[0],
        lambda: B.AbsoluteValue(validate_args=True).inverse_log_det_jacobian(-1.0, 0)[1],
    ],
)
def test_values_that_are_checked(build):
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(build())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: B.Softsign(validate_args=True).inverse(-3.0), "must be greater than -1"),
        (lambda: B.Softsign(validate_args=True).inverse_log_det_jacobian(3.0, 0), "must be less than 1"),
        (lambda: B.PowerTransform(0.2, validate_args=True).forward(-6.0), "must be at least -5"),
        (lambda: B.PowerTransform(0.2, validate_args=True).inverse(0.0), "must be greater than 0"),
        (lambda: B.Gumbel(validate_args=True).inverse(2.0), "must be less than or equal to 1"),
        (lambda: B.Kumaraswamy(validate_args=True).forward(2.0), "must be less than or equal to 1"),
        (lambda: B.FillTriangular(validate_args=True).forward_event_shape_tensor([5, 7]), "not a triangular number"),
        (lambda: B.FillTriangular(validate_args=True).inverse_event_shape_tensor([5, 3, 2]), "Matrix must be square"),
    ],
)
def test_what_is_said_of_values_outside(build, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(build())


def test_limits_of_checked_images_are_images():
    for bijector in (B.Gumbel(validate_args=True), B.Weibull(validate_args=True), B.Kumaraswamy(validate_args=True)):
        assert run(bijector.forward(bijector.inverse([0.0, 1.0]))).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="Vector length 7 is not a triangular number"):
        B.FillTriangular().forward_event_shape(tf.TensorShape([5, 4, 7]))


def test_layers_of_flows_share_their_variables():
    for shift_only in (False, True):
        function = B.real_nvp_default_template([8], shift_only=shift_only)
        flow = B.RealNVP(1, function, is_constant_jacobian=shift_only)
        x = np.float32(ANY)
        y = flow.forward(x)
        back, log_det, one = flow.inverse(y + 0.0), flow.forward_log_det_jacobian(x, 1), flow.forward(x[0])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = session.run([back, y, log_det, one])
        np.testing.assert_allclose(values[0], x, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(values[1][0], values[3], rtol=1e-5)
        np.testing.assert_allclose(values[1][:, 0], x[:, 0])
        assert not shift_only or not values[2].any()
    assert len(tf.trainable_variables()) == 8


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("shift_only", [False, True])
def test_each_element_depends_on_those_before(shift_only, unroll):
    function = B.masked_autoregressive_default_template([9, 6], shift_only)
    flow = B.MaskedAutoregressiveFlow(function, shift_only, unroll_loop=unroll)
    x = np.float32(ANY)
    y = flow.forward(x)
    feed = tf.placeholder(tf.float32, [3])
    given = tf.stop_gradient(y)
    back, one = B.MaskedAutoregressiveFlow(function).inverse(given), flow.inverse(feed)
    log_det = flow.inverse_log_det_jacobian(given, 1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values, origins, determinants = session.run([y, back, log_det])
        np.testing.assert_allclose(origins, x, rtol=1e-3, atol=1e-4)
        step = np.eye(3, dtype=np.float32) * 1e-2
        slopes = [
            np.stack([(session.run(one, {feed: row + s}) - session.run(one, {feed: row - s})) / 2e-2 for s in step], 1)
            for row in values
        ]
    np.testing.assert_allclose(np.triu(slopes, 1), 0, atol=1e-4)
    expected = np.log(np.diagonal(slopes, axis1=1, axis2=2)).sum(-1)
    np.testing.assert_allclose(np.broadcast_to(determinants, 2), expected, atol=1e-2)
    assert len(tf.trainable_variables()) == 6
    likely = D.TransformedDistribution(D.Normal(0.0, 1.0), flow, event_shape=[3]).log_prob(x)
    assert all(gradient is not None for gradient in tf.gradients(likely, tf.trainable_variables()))


def test_masked_layers():
    kernel_of = []
    for blocks, exclusive in (1, False), (3, False), (3, True):
        layer = B.masked_dense(np.eye(3, dtype=np.float32), 6, blocks, exclusive, tf.ones_initializer())
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            kernel_of.append(session.run(layer).tolist())
    assert kernel_of == [
        [[1] * 6] * 3,
        [[1] * 6, [0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1]],
        [[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1], [0] * 6],
    ]
    with pytest.raises(NotImplementedError, match="must be known"):
        B.masked_dense(tf.placeholder(tf.float32, [2, None]), 3)
    unknown = B.MaskedAutoregressiveFlow(lambda y: (y, None), unroll_loop=True)
    with pytest.raises(ValueError, match="must be known"):
        unknown.forward(tf.placeholder(tf.float32, [2, None]))


# -- distributions of images ---------------------------------------------------------------------------


def test_transformed_numbers():
    mine = D.TransformedDistribution(D.Normal(ANY[0], W(0.5)), B.Exp(), name="LogNormal")
    reference = stats.lognorm(0.5, scale=np.exp(ANY[0]))
    assert (mine.batch_shape, mine.event_shape, mine.name) == ([3], [], "LogNormal/")
    got = run(
        [
            mine.log_prob(POSITIVE),
            mine.prob(POSITIVE),
            mine.cdf(POSITIVE),
            mine.log_cdf(POSITIVE),
            mine.survival_function(POSITIVE),
            mine.log_survival_function(POSITIVE),
            mine.quantile(SHARES),
        ]
    )
    wanted = [
        reference.logpdf(POSITIVE),
        reference.pdf(POSITIVE),
        reference.cdf(POSITIVE),
        reference.logcdf(POSITIVE),
        reference.sf(POSITIVE),
        reference.logsf(POSITIVE),
        reference.ppf(SHARES),
    ]
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)
    samples = mine.sample([4, 500], seed=1)
    drawn, likely = run([samples, mine.log_prob(samples)])
    assert samples.shape == [4, 500, 3]
    np.testing.assert_allclose(likely, reference.logpdf(drawn), rtol=1e-7)
    for i in range(3):
        assert stats.kstest(drawn[..., i].ravel(), stats.lognorm(0.5, scale=np.exp(ANY[0, i])).cdf).pvalue > 0.01
    for statistic in (mine.mean, mine.entropy):
        with pytest.raises(NotImplementedError):
            statistic()


def test_statistics_of_affine_images():
    mine = D.TransformedDistribution(D.Normal(ANY[0], W(0.5)), B.AffineScalar(W(1.0), W(-2.0)))
    mean, entropy = run([mine.mean(), mine.entropy()])
    np.testing.assert_allclose(mean, 1 - 2 * ANY[0])
    np.testing.assert_allclose(entropy, np.full(3, stats.norm(0, 1).entropy()))


def test_vectors_of_numbers_that_are_distributed_alike():
    affine = B.Affine(np.arange(3.0), scale_tril=TRIL)
    mine = D.TransformedDistribution(D.Normal(W(0), W(1)), affine, event_shape=[3])
    reference = stats.multivariate_normal(np.arange(3.0), TRIL @ TRIL.T)
    assert (mine.batch_shape, mine.event_shape) == ([], [3])
    likely, mean, entropy, sizes = run([mine.log_prob(ANY), mine.mean(), mine.entropy(), mine.event_shape_tensor()])
    np.testing.assert_allclose(likely, reference.logpdf(ANY))
    np.testing.assert_allclose(mean, np.arange(3.0))
    np.testing.assert_allclose(entropy, reference.entropy())
    assert sizes.tolist() == [3]
    drawn = run(mine.sample(4000, seed=2))
    np.testing.assert_allclose(np.cov(drawn.T), TRIL @ TRIL.T, atol=0.1 * np.abs(TRIL @ TRIL.T).max())
    with pytest.raises(NotImplementedError, match="overriding event_shape"):
        mine.cdf(ANY)


def test_batches_and_events_that_are_given():
    mine = D.TransformedDistribution(D.Normal(W(1), W(2)), B.AffineScalar(W(0.5)), [2], [3])
    assert (mine.batch_shape, mine.event_shape, mine.sample(5).shape) == ([2], [3], [5, 2, 3])
    likely, mean, entropy = run([mine.log_prob(ANY), mine.mean(), mine.entropy()])
    np.testing.assert_allclose(likely, stats.norm(1.5, 2).logpdf(ANY).sum(-1))
    np.testing.assert_allclose(mean, np.full((2, 3), 1.5))
    np.testing.assert_allclose(entropy, np.full(2, 3 * stats.norm(1.5, 2).entropy()))
    # Events of numbers of a batch, whose dimensions come in front.
    mine = D.TransformedDistribution(D.Normal(np.array([0.0, 50.0]), W(1)), event_shape=[3])
    assert (mine.batch_shape, mine.event_shape, mine.sample([5]).shape) == ([2], [3], [5, 2, 3])
    drawn, mean, likely = run([mine.sample([5]), mine.mean(), mine.log_prob(ANY)])
    assert (np.abs(drawn - np.array([0.0, 50.0])[:, None]) < 9).all()
    np.testing.assert_allclose(mean, [[0] * 3, [50] * 3])
    np.testing.assert_allclose(likely, stats.norm([[0.0], [50.0]], 1).logpdf(ANY).sum(-1))
    for shape in ({"batch_shape": [2]}, {"event_shape": [[2]]}):
        with pytest.raises(ValueError, match=r"scalar|vector"):
            D.TransformedDistribution(D.Normal([0.0, 1.0], 1.0), **shape)


@pytest.mark.parametrize(
    ("base", "batch", "event"),
    [
        *[("number", batch, event) for batch in ([2], []) for event in ([3], [])],
        *[("numbers", [], event) for event in ([3], [])],
        *[("vector", batch, []) for batch in ([2], [])],
    ],
)
def test_batches_and_events_whose_length_is_known_to_steps_only(base, batch, event):
    numbers = {"number": W(1), "numbers": np.array([1.0, 1.0]), "vector": np.ones(3)}[base]
    normal = D.MultivariateNormalDiag if base == "vector" else D.Normal
    given = [tf.placeholder(tf.int32), tf.placeholder(tf.int32)]
    feeds = dict(zip(given, [batch, event], strict=True))
    mine = D.TransformedDistribution(
        normal(numbers, 2 * np.ones_like(numbers)), B.AffineScalar(scale=W(0.5)), *given, validate_args=True
    )
    assert mine.batch_shape.rank is None and mine.event_shape.rank is None
    batch, event = batch or ([2] if base == "numbers" else []), event or ([3] if base == "vector" else [])
    drawn = mine.sample([5])
    fetched = [drawn, mine.log_prob(drawn), mine.mean(), mine.entropy(), mine.batch_shape_tensor()]
    with tf.Session() as session:
        x, likely, mean, entropy, sizes = session.run(fetched, feeds)
        assert session.run(mine.event_shape_tensor(), feeds).tolist() == event
    reference, count = stats.norm(0.5, 1), int(np.prod(event))
    assert x.shape == (5, *batch, *event) and sizes.tolist() == batch
    np.testing.assert_allclose(likely, reference.logpdf(x).reshape(5, *batch, count).sum(-1))
    np.testing.assert_allclose(mean, np.full([*batch, *event], 0.5))
    np.testing.assert_allclose(entropy, np.full(batch, count * reference.entropy()))


def test_a_given_shape_that_is_not_empty_is_checked_in_steps():
    sizes = tf.placeholder_with_default([2], None)
    mine = D.TransformedDistribution(D.Normal([0.0, 1.0], 1.0), B.Exp(), sizes, validate_args=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="base distribution not scalar"):
        run(mine.batch_shape_tensor())


def test_several_values_with_one_image():
    there = B.AbsoluteValue()
    low, high = there.inverse(ANY)
    dets = there.inverse_log_det_jacobian(np.abs(ANY), event_ndims=1)
    assert [part.tolist() for part in run([low, high])] == [(-ANY).tolist(), ANY.tolist()]
    assert [part.tolist() for part in run(list(dets))] == [0.0, 0.0]
    mine = D.TransformedDistribution(D.Normal(W(1), W(2)), there)
    normal = stats.norm(1, 2)
    likely, density = run([mine.log_prob(POSITIVE), mine.prob(POSITIVE)])
    np.testing.assert_allclose(density, normal.pdf(POSITIVE) + normal.pdf(-POSITIVE))
    np.testing.assert_allclose(np.exp(likely), density)
    assert (run(mine.sample(20)) >= 0).all()
    for asked in (mine.cdf, mine.log_survival_function, mine.quantile):
        with pytest.raises(NotImplementedError, match="not injective"):
            asked(POSITIVE)
    for asked in (mine.mean, mine.entropy):
        with pytest.raises(NotImplementedError, match=r"injective|non-affine"):
            asked()


@pytest.mark.parametrize("rank", [None, 1])
def test_shapes_known_to_steps_only(rank):
    before, after = (tf.placeholder(tf.int32, rank and [size]) for size in (2, 1))
    reshape = B.Reshape(after, before, validate_args=True)
    x = RANDOM.normal(size=(4, 2, 3))
    asked = [
        reshape.forward(x),
        reshape.inverse(x.reshape(4, 6)),
        reshape.forward_log_det_jacobian(x, event_ndims=2),
        reshape.forward_event_shape_tensor([2, 3]),
        reshape.inverse_event_shape_tensor([6]),
    ]
    with tf.Session() as session:
        y, origin, det, sizes, sizes_before = session.run(asked, {before: [-1, 3], after: [6]})
        assert (sizes.tolist(), sizes_before.tolist(), det) == ([6], [2, 3], 0.0)
        np.testing.assert_array_equal(y, x.reshape(4, 6))
        np.testing.assert_array_equal(origin, x)
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not match `event_shape_in`"):
            session.run(asked[0], {before: [3, -1], after: [6]})


def test_numbers_of_dimensions_known_to_steps_only():
    ndims = tf.placeholder(tf.int32, [])
    det = B.Exp().forward_log_det_jacobian(ANY, ndims)
    with tf.Session() as session:
        for known in (0, 1, 2):
            axes = tuple(range(2 - known, 2))
            np.testing.assert_allclose(session.run(det, {ndims: known}), ANY.sum(axes))


def test_images_with_more_elements():
    mine = D.TransformedDistribution(D.MultivariateNormalDiag(np.zeros(3), np.ones(3)), B.SoftmaxCentered())
    assert (mine.event_shape, mine.sample(2).shape) == ([4], [2, 4])
    shares = run(mine.sample(7, seed=3))
    np.testing.assert_allclose(shares.sum(-1), 1)
    inner = np.log(shares[:, :3] / shares[:, 3:])
    expected = stats.norm(0, 1).logpdf(inner).sum(-1) - np.log(shares).sum(-1)
    np.testing.assert_allclose(run(mine.log_prob(shares)), expected)


def test_gradients_flow_from_samples_of_images():
    loc = tf.constant(ANY[0])
    samples = D.TransformedDistribution(D.Normal(loc, W(1)), B.Exp()).sample(4, seed=3)
    found, drawn = run([tf.gradients(samples, loc)[0], samples])
    np.testing.assert_allclose(found, drawn.sum(0))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3)])
@pytest.mark.parametrize("factor", [None, FACTOR])
def test_one_matrix_maps_vectors_of_any_rank(shape, factor):
    bijector = B.Affine(np.arange(3.0), scale_tril=TRIL, scale_perturb_factor=factor)
    matrix = np.tril(TRIL) + (0 if factor is None else factor @ factor.T)
    value = np.random.default_rng(0).normal(size=shape)
    for static in (shape, None):
        x = tf.placeholder_with_default(value, static)
        there = bijector.forward(x)
        np.testing.assert_allclose(run(there), value @ matrix.T + np.arange(3.0))
        np.testing.assert_allclose(run(bijector.inverse(there + 0.0)), value)


@pytest.mark.parametrize("event_ndims", [0, 1, 2])
def test_any_number_of_dimensions_may_be_an_event_that_is_reshaped(event_ndims):
    reshape = B.Reshape([1, 2, 3], [2, 3])
    assert (reshape.forward_min_event_ndims, reshape.inverse_min_event_ndims) == (0, 0)
    forward = reshape.forward_log_det_jacobian(np.zeros((4, 2, 3)), event_ndims=event_ndims)
    inverse = reshape.inverse_log_det_jacobian(np.zeros((4, 1, 2, 3)), event_ndims=event_ndims)
    assert run([forward, inverse]) == [0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("skewness", "tailweight"), [(0.0, 1.0), (-1.0, 0.5), (0.3, 1.0)])
def test_sinh_arcsinh_of_the_largest_numbers(skewness, tailweight, dtype):
    # Of the very largest, the sine of the inverse sine is infinite where a CPU rounds upwards.
    limit = np.finfo(dtype).max / 2
    x = np.array([-limit, -1e30, -1.0, 0.0, 0.5, 1e30, limit], dtype)
    x = x[1:-1] if skewness * tailweight > 0 else x
    bijector = B.SinhArcsinh(dtype(skewness), dtype(tailweight))
    wide = x.astype(np.longdouble)
    angle = np.arcsinh(wide)
    changed = (angle + skewness) * tailweight
    expected = np.log(np.cosh(changed)) - np.log(np.cosh(angle)) + np.log(tailweight)
    found, back = run(
        [
            bijector.forward_log_det_jacobian(x, event_ndims=0),
            bijector.inverse_log_det_jacobian(bijector.forward(x), event_ndims=0),
        ]
    )
    np.testing.assert_allclose(found, expected.astype(dtype), rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(back, -found, rtol=1e-4, atol=2e-5)


def test_what_is_not_positive_is_named():
    for build in (
        lambda: B.SinhArcsinh(tailweight=0.0, validate_args=True),
        lambda: B.Gumbel(scale=0.0, validate_args=True),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Argument (tailweight|scale) was not positive"):
            run(build().forward(1.0))
