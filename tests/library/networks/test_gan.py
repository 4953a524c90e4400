"""Adversarial networks: losses against NumPy, models, what helps them, measures against SciPy, and training."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from scipy.special import expit, log_softmax

import tfray as tf
from tfray.contrib import gan

REAL = np.array([[1.5], [-0.5], [3.0], [0.25]], np.float32)
MADE = np.array([[-1.0], [2.0], [0.5], [-2.5]], np.float32)
LABELS = np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]
WEIGHTS = np.array([[1.0], [0.0], [2.0], [0.5]], np.float32)


def run(session, fetches):
    session.run(tf.global_variables_initializer())
    return session.run(fetches)


def softplus(x):
    return np.log1p(np.exp(np.asarray(x, np.float64)))


def entropy(outputs, smoothing=0.0, label=1.0):
    """The cross entropy of sigmoids, with a label smoothed towards one half."""
    wanted = label * (1 - smoothing) + smoothing / 2
    return wanted * softplus(-outputs) + (1 - wanted) * softplus(outputs)


LOSSES = {
    "wasserstein_generator_loss": lambda: -MADE.mean(),
    "wasserstein_discriminator_loss": lambda: MADE.mean() - REAL.mean(),
    "minimax_discriminator_loss": lambda: entropy(REAL, 0.25).mean() + entropy(MADE, label=0.0).mean(),
    "minimax_generator_loss": lambda: -entropy(np.ones(1)).mean() - entropy(MADE, label=0.0).mean(),
    "modified_discriminator_loss": lambda: entropy(REAL, 0.25).mean() + entropy(MADE, label=0.0).mean(),
    "modified_generator_loss": lambda: -np.log(expit(MADE)).mean(),
    "least_squares_generator_loss": lambda: ((MADE - 1) ** 2).mean() / 2,
    "least_squares_discriminator_loss": lambda: ((REAL - 1) ** 2).mean() / 2 + (MADE**2).mean() / 2,
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(session, name):
    outputs = [REAL, MADE] if "discriminator" in name else [MADE]
    loss = getattr(gan.losses.wargs, name)(*outputs, add_summaries=True)
    assert session.run(loss) == pytest.approx(LOSSES[name](), rel=1e-6)
    assert len(tf.losses.get_losses()) == 1
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == (3 if "discriminator" in name else 1)


@pytest.mark.parametrize(
    ("name", "tags"),
    [  # as TensorFlow 1 writes them: two losses leave their scope first, whose name is taken
        ("wasserstein_generator_loss", ["generator_wasserstein_loss/generator_wass_loss"]),
        ("minimax_generator_loss", ["generator_minimax_loss_1"]),
        ("least_squares_generator_loss", ["generator_lsq_loss"]),
        (
            "modified_discriminator_loss",
            [f"discriminator_modified_loss/discriminator_{part}minimax_loss" for part in ("gen_", "real_", "")],
        ),
        ("least_squares_discriminator_loss", [f"discriminator_{part}lsq_loss" for part in ("gen_", "real_", "")]),
    ],
)
def test_tags_of_summaries(session, name, tags):
    outputs = [REAL, MADE] if "discriminator" in name else [MADE]
    with tf.name_scope("outer"):
        getattr(gan.losses.wargs, name)(*outputs, add_summaries=True)
    found = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    assert [value.tag for value in found.value] == [f"outer/{tag}" for tag in tags]


@pytest.mark.parametrize("name", ["wasserstein_discriminator_loss", "least_squares_discriminator_loss"])
def test_outputs_have_one_shape(name):
    with pytest.raises(ValueError, match="are incompatible"):
        getattr(gan.losses.wargs, name)(REAL, MADE[:, 0])


def test_weights_and_reductions(session):
    wargs = gan.losses.wargs
    loss = wargs.wasserstein_discriminator_loss(REAL, MADE, WEIGHTS, 2.0, loss_collection=None)
    assert session.run(loss) == pytest.approx(2 * MADE.mean() - (REAL * WEIGHTS).sum() / 3, rel=1e-6)
    loss = wargs.least_squares_generator_loss(MADE, real_label=3, weights=WEIGHTS, reduction="none")
    np.testing.assert_allclose(session.run(loss), WEIGHTS * (MADE - 3) ** 2 / 2, rtol=1e-6)
    assert len(tf.losses.get_losses()) == 1


def test_losses_of_classes(session):
    logits = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    smoothed = LABELS * 0.9 + 0.1 / 3
    real, made = (
        -(labels * log_softmax(each, 1)).sum(1).mean() for labels, each in zip((smoothed, LABELS), logits, strict=True)
    )
    loss = gan.losses.wargs.acgan_discriminator_loss(logits[0], logits[1], LABELS, label_smoothing=0.1)
    assert session.run(loss) == pytest.approx(real + made, rel=1e-5)
    assert session.run(gan.losses.wargs.acgan_generator_loss(logits[1], LABELS)) == pytest.approx(made, rel=1e-5)


@pytest.mark.parametrize(("one_sided", "target"), [(False, 1.0), (True, 1.0), (False, 3.0), (True, 3.0)])
def test_the_penalty_of_slopes(session, one_sided, target):
    # The slope of x . (1, 2) is sqrt(5) everywhere.
    penalty = gan.losses.wargs.wasserstein_gradient_penalty(
        np.zeros([4, 2], np.float32),
        np.ones([4, 2], np.float32),
        None,
        lambda x, _: tf.reduce_sum(x * [1.0, 2.0], 1),
        "Discriminator",
        target=target,
        one_sided=one_sided,
    )
    off = np.sqrt(5) / target - 1
    assert session.run(penalty) == pytest.approx(max(off, 0) ** 2 if one_sided else off**2, rel=1e-5)


def test_two_losses_are_combined(session):
    x = tf.get_variable("x", initializer=[3.0, 4.0])
    main, other = tf.reduce_sum(x * [1.0, 0.0]), tf.reduce_sum(tf.square(x))
    combine = gan.losses.wargs.combine_adversarial_loss
    by_factor = combine(main, other, weight_factor=0.5)
    by_ratio = combine(main, other, gradient_ratio=0.2)
    session.run(tf.global_variables_initializer())
    assert session.run(by_factor) == pytest.approx(3 + 12.5)
    # The gradients' norms are 1 and 10.
    assert session.run(by_ratio) == pytest.approx(3 + 1 / 10 / 0.2 * 25, rel=1e-5)
    assert combine(main, other, weight_factor=0) is main
    # A loss without slope, whose coefficient is large and finite, adds what it is.
    flat = tf.reduce_sum(tf.square(x - [3.0, 4.0]))
    assert session.run(combine(main, flat, gradient_ratio=0.2)) == 3
    wide = combine(tf.cast(main, tf.float64), tf.cast(other, tf.float64), weight_factor=tf.constant(0.5, tf.float64))
    assert wide.dtype == tf.float64 and session.run(wide) == 3 + 12.5
    with pytest.raises(ValueError, match="either"):
        combine(main, other)
    with pytest.raises(ValueError, match="are incompatible"):
        combine(main, tf.square(x), weight_factor=0.5)


# -- models --------------------------------------------------------------------------------------------


def generator(noise):
    return tf.layers.dense(noise, 1, name="out")


def discriminator(data, _):
    return tf.layers.dense(tf.layers.dense(data, 8, tf.nn.relu, name="hidden"), 1, name="out")


def build(generator_fn=generator, **scopes):
    noise = np.ones([4, 2], np.float32)
    return gan.gan_model(generator_fn, lambda x, _: tf.layers.dense(x[:, :1], 1), REAL, noise, **scopes)


def test_a_model(session):
    model = build()
    assert [v.op.name for v in model.generator_variables] == ["Generator/out/kernel", "Generator/out/bias"]
    assert {v.op.name.split("/")[0] for v in model.discriminator_variables} == {"Discriminator"}
    assert len(model.discriminator_variables) == 2
    loss = gan.gan_loss(model, gradient_penalty_weight=2.0)
    outputs = [model.discriminator_real_outputs, model.discriminator_gen_outputs, *loss]
    real, made, of_generator, of_discriminator = run(session, outputs)
    assert of_generator == pytest.approx(-made.mean(), rel=1e-5)
    assert of_discriminator > made.mean() - real.mean()


def test_real_data_of_several_parts(session):
    model = gan.gan_model(
        lambda noise: {"a": generator(noise)},
        lambda data, _: 3.0 * data["a"],
        {"a": REAL},
        np.ones([4, 2], np.float32),
        check_shapes=False,
    )
    np.testing.assert_allclose(run(session, model.discriminator_real_outputs), 3 * REAL)
    assert isinstance(model.real_data["a"], tf.Tensor)


def test_a_loss_of_a_model_tells_what_is_missing():
    model = build()
    with pytest.raises(ValueError, match="one_hot_labels are not in a GANModel"):
        gan.losses.acgan_generator_loss(model)
    with pytest.raises(ValueError, match="given as well"):
        gan.losses.wasserstein_generator_loss(model, discriminator_gen_outputs=MADE)
    with pytest.raises(ValueError, match="must be the same shape"):
        build(generator_scope="G", discriminator_scope="D", generator_fn=lambda x: x)
    with pytest.raises(ValueError, match="must be greater than 0"):
        gan.gan_loss(model, gradient_penalty_weight=-1.0)
    with pytest.raises(ValueError, match="InfoGANModel"):
        gan.gan_loss(model, mutual_information_penalty_weight=1.0)


def test_regularizers_count_in_their_scopes(session):
    def regularized(data, _):
        return tf.layers.dense(data, 1, kernel_regularizer=tf.nn.l2_loss, kernel_initializer=tf.ones_initializer())

    model = gan.gan_model(generator, regularized, REAL, np.ones([4, 2], np.float32))
    loss = gan.gan_loss(model)
    wasserstein = gan.losses.wasserstein_discriminator_loss(model)
    found = run(session, [loss.discriminator_loss, wasserstein])
    assert found[0] - found[1] == pytest.approx(0.5, rel=1e-5)


def test_a_model_that_predicts_its_inputs(session):
    def telling(data, _):
        return discriminator(data, None), [tf.distributions.Normal(tf.layers.dense(data, 1, name="told"), 1.0)]

    structured = [np.full([4, 1], 0.5, np.float32)]
    model = gan.infogan_model(
        lambda inputs: generator(tf.concat(inputs, 1)), telling, REAL, [np.ones([4, 2], np.float32)], structured
    )
    loss = gan.gan_loss(model, mutual_information_penalty_weight=3.0)
    plain = gan.gan_loss(model)
    told = model.predicted_distributions[0].mean()
    with_it, without, told = run(session, [loss.generator_loss, plain.generator_loss, told])
    penalty = np.mean((told - 0.5) ** 2) / 2 + np.log(2 * np.pi) / 2
    assert with_it - without == pytest.approx(3 * penalty, rel=1e-4)


def test_a_model_that_tells_classes(session):
    def telling(data, _):
        return discriminator(data, None), tf.layers.dense(data, 3, name="classes")

    noise = np.ones([4, 2], np.float32)
    model = gan.acgan_model(generator, telling, REAL, noise, LABELS)
    loss = gan.gan_loss(model, aux_cond_generator_weight=1.0, aux_cond_discriminator_weight=2.0)
    logits = model.discriminator_real_classification_logits, model.discriminator_gen_classification_logits
    plain = gan.gan_loss(model)
    values = run(session, [*loss, *plain, *logits])
    real, made = (-(LABELS * log_softmax(each, 1)).sum(1).mean() for each in values[4:])
    assert values[0] - values[2] == pytest.approx(made, rel=1e-4)
    assert values[1] - values[3] == pytest.approx(2 * (real + made), rel=1e-4)
    with pytest.raises(TypeError, match="must output a tuple"):
        gan.acgan_model(generator, discriminator, REAL, noise, LABELS, "G", "D")


def test_two_models_that_lead_there_and_back(session):
    def scaled(data):
        return data * tf.get_variable("scale", [], initializer=tf.constant_initializer(2.0))

    model = gan.cyclegan_model(scaled, discriminator, REAL, MADE)
    assert [v.op.name for v in model.model_y2x.generator_variables] == ["ModelY2X/Generator/scale"]
    loss = gan.cyclegan_loss(model, cycle_consistency_loss_weight=2.0)
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    train = gan.gan_train_ops(model, loss, optimizer, optimizer)
    alone = gan.losses.least_squares_generator_loss(model.model_x2y)
    found = run(session, [loss.loss_x2y.generator_loss, alone, model.reconstructed_x])
    np.testing.assert_allclose(found[2], 4 * REAL)
    both_ways = 3 * (np.abs(REAL).mean() + np.abs(MADE).mean()) / 2
    assert found[0] - found[1] == pytest.approx(2 * both_ways, rel=1e-5)
    session.run([train.generator_train_op, train.discriminator_train_op, train.global_step_inc_op])
    assert session.run(tf.train.get_global_step()) == 1


def test_a_generator_that_leads_to_several_domains(session):
    labels = np.eye(2, dtype=np.float32)[[0, 1, 1, 0]]

    def moved(data, domains):
        scale = tf.get_variable("scale", [2, 1], initializer=tf.constant_initializer([2.0, 3.0]))
        return data * tf.matmul(domains, scale)

    def telling(data, count):
        assert count == 2
        slope = tf.get_variable("slope", [], initializer=tf.constant_initializer(3.0))
        return slope * data[:, 0], tf.concat([data, -data], 1)

    model = gan.stargan_model(moved, telling, [REAL[:1], REAL[1:]], labels)
    loss = gan.stargan_loss(model)
    summed = gan.stargan_loss(
        model,
        gradient_penalty_weight=0.0,
        reconstruction_loss_weight=0.0,
        classification_loss_fn=lambda onehot_labels, logits: onehot_labels * logits,
        classification_one_hot=False,
    )
    assert [v.op.name for v in model.generator_variables] == ["Generator/scale"]
    assert [v.op.name for v in model.discriminator_variables] == ["Discriminator/slope"]
    target, made, again, *found = run(
        session,
        [model.generated_data_domain_target, model.generated_data, model.reconstructed_data, *loss, *summed],
    )
    assert (target.sum(1) == 1).all()
    np.testing.assert_allclose(made, REAL * np.where(target[:, :1], 2, 3))
    np.testing.assert_allclose(again, made * np.where(labels[:, :1], 2, 3))

    def of_domains(data, wanted):
        return -(wanted * log_softmax(np.concatenate([data, -data], 1), 1)).sum(1).mean()

    # The discriminator's slope is 3 everywhere, and 1 is wanted.
    expected = [
        -3 * made.mean() + 10 * np.abs(REAL - again).mean() + of_domains(made, target),
        3 * made.mean() - 3 * REAL.mean() + 10 * (3 - 1) ** 2 + of_domains(REAL, labels),
    ]
    np.testing.assert_allclose(found[:2], expected, rtol=1e-5)
    plain = [
        -3 * made.mean() + (target * np.concatenate([made, -made], 1)).sum(1).mean(),
        3 * made.mean() - 3 * REAL.mean() + (labels * np.concatenate([REAL, -REAL], 1)).sum(1).mean(),
    ]
    np.testing.assert_allclose(found[2:], plain, rtol=1e-5)
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    session.run(gan.gan_train_ops(model, loss, optimizer, optimizer).generator_train_op)
    with pytest.raises(ValueError, match="rank 2"):
        gan.stargan_model(moved, telling, REAL, labels[0])


# -- features ------------------------------------------------------------------------------------------


def test_tensors_with_conditions(session):
    with tf.variable_scope("a"):
        one = gan.features.condition_tensor(tf.ones([4, 2, 3]), tf.constant(LABELS))
    with tf.variable_scope("b"):
        two = gan.features.condition_tensor_from_onehot(tf.ones([4, 5]), tf.constant(LABELS), embedding_size=7)
    assert one.shape.as_list() == [4, 2, 3] and two.shape.as_list() == [4, 5]
    found = run(session, [one, two])
    # The third and the fourth label are the same.
    assert all((each[2] == each[3]).all() and (each[0] != each[2]).any() for each in found)


def test_a_pool_of_tensors(session):
    x = tf.placeholder(tf.float32, [])
    tf.set_random_seed(3)
    one, many = gan.features.tensor_pool((x, [x + 100.0]), pool_size=4, pooling_probability=0.5)
    assert gan.features.tensor_pool(x, 0) is x
    found = [session.run([one, many[0]], {x: i}) for i in range(60)]
    values = np.array([each[0] for each in found])
    assert all(second == first + 100 for first, second in found)
    np.testing.assert_array_equal(values[:4], range(4))
    assert (values <= np.arange(60)).all() and 10 < np.sum(values < np.arange(60)) < 50


def test_clipped_weights(session):
    x = tf.get_variable("x", initializer=[3.0, 0.01])
    optimizer = gan.features.clip_variables(tf.train.GradientDescentOptimizer(1.0), [x], 0.05)
    step = optimizer.minimize(tf.reduce_sum(x))
    session.run(tf.global_variables_initializer())
    session.run(step)
    np.testing.assert_allclose(session.run(x), [0.05, -0.05], rtol=1e-6)
    with pytest.raises(ValueError, match="must be positive"):
        gan.features.clip_variables(optimizer, [x], -1.0)


def test_spectral_norms(session):
    weights = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(np.float32)
    norm = gan.features.compute_spectral_norm(tf.constant(weights))
    session.run(tf.global_variables_initializer())
    for _ in range(100):
        found = session.run(norm)
    assert found == pytest.approx(np.linalg.norm(weights.reshape(12, 5), 2), rel=1e-4)


def test_weights_over_their_spectral_norms(session):
    getter = gan.features.spectral_normalization_custom_getter(power_iteration_rounds=50)
    # Norms close to the greatest one would take more rounds to fall behind.
    weights = np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    with tf.variable_scope("net", custom_getter=getter, initializer=tf.constant_initializer(weights)):
        made = tf.layers.dense(np.eye(4, dtype=np.float32), 6, bias_initializer=tf.ones_initializer())
    assert "net/dense/bias" in [v.op.name for v in tf.trainable_variables()]
    assert np.linalg.norm(run(session, made) - 1, 2) == pytest.approx(1, rel=1e-4)


def test_regularizers_of_spectral_norms(session):
    weights = tf.constant(np.diag([3.0, 1.0]).astype(np.float32))
    make = gan.features.spectral_norm_regularizer
    found = run(session, [make(scale, 50)(weights) for scale in (0.5, tf.constant(0.5))])
    np.testing.assert_allclose(found, 1.5, rtol=1e-4)
    assert make(0.0)(weights) is None
    for scale, problem in ((1, "cannot be an integer"), (-0.5, "less than 0")):
        with pytest.raises(ValueError, match=problem):
            make(scale)


def test_layers_of_keras_over_their_spectral_norms(session):
    tf.set_random_seed(1)  # how fast the power iteration converges depends on the weights
    with gan.features.keras_spectral_normalization(power_iteration_rounds=50):
        made = tf.keras.layers.Dense(6, bias_initializer="ones")(tf.constant(np.eye(4, dtype=np.float32)))
    plain = tf.keras.layers.Dense(6)(tf.zeros([1, 4]))
    assert len(tf.trainable_variables()) == 4 and plain.shape.as_list() == [1, 6]
    assert np.linalg.norm(run(session, made) - 1, 2) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "settings", "problem"),
    [
        ("bias", {"shape": [3]}, "multi-dimensional"),
        ("kernel", {"shape": [2, 2], "dtype": tf.int32}, "floating-point"),
        ("spectral_norm_u", {"shape": [2, 1]}, "not normalized itself"),
    ],
)
def test_variables_that_have_no_spectral_norm(name, settings, problem):
    getter = gan.features.spectral_normalization_custom_getter(lambda name: True)
    with tf.variable_scope("net", custom_getter=getter), pytest.raises(ValueError, match=problem):
        tf.get_variable(name, **settings)


def test_virtual_batch_normalization(session):
    random = np.random.default_rng(2)
    reference, batch = (random.normal(2, 3, (count, 4, 3)).astype(np.float32) for count in (6, 2))
    layer = gan.features.VBN(tf.constant(reference))
    own, found = run(session, [layer.reference_batch_normalization(), layer(tf.constant(batch))])
    np.testing.assert_allclose(
        own, (reference - reference.mean((0, 1))) / np.sqrt(reference.var((0, 1)) + 1e-3), atol=1e-4
    )
    for values, result in zip(batch, found, strict=True):
        every = np.concatenate([reference, values[None]])
        expected = (values - every.mean((0, 1))) / np.sqrt(every.var((0, 1)) + 1e-3)
        np.testing.assert_allclose(result, expected, atol=1e-4)
    with pytest.raises(ValueError, match="incompatible"):
        layer(tf.zeros([2, 4, 5]))
    with pytest.raises(ValueError, match="shape"):
        gan.features.VBN(tf.placeholder(tf.float32, [None, None]))


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_virtual_batch_normalization_of_other_dtypes(session, kind):
    reference = np.random.default_rng(8).normal(400, 30, (6, 3)).astype(kind)
    layer = gan.features.VBN(tf.constant(reference), beta_initializer=tf.ones_initializer())
    own, found = run(session, [layer.reference_batch_normalization(), layer(tf.constant(reference[:2]))])
    wide = reference.astype(np.float64)
    expected = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-3) + 1
    np.testing.assert_allclose(own, expected, atol=3e-3 if kind == np.float16 else 1e-6)
    assert own.dtype == found.dtype == kind and np.isfinite(found).all()


# -- measures ------------------------------------------------------------------------------------------


def test_the_score_of_a_classifier(session):
    logits = np.random.default_rng(3).normal(size=(8, 5)).astype(np.float32)
    likely = np.exp(log_softmax(logits, 1))
    expected = np.exp((likely * (np.log(likely) - np.log(likely.mean(0)))).sum(1).mean())
    evaluate = gan.eval
    assert session.run(evaluate.classifier_score_from_logits(tf.constant(logits))) == pytest.approx(expected, rel=1e-5)
    found = evaluate.classifier_score(tf.constant(logits), lambda x: x, num_batches=4)
    assert session.run(found) == pytest.approx(expected, rel=1e-5)


def test_the_score_of_classes_that_never_are(session):
    sure = tf.constant([[0.0, -2000.0], [0.0, -2000.0]])
    assert session.run(gan.eval.classifier_score_from_logits(sure)) == 1


def test_a_classifier_from_a_file(session, tmp_path):
    with tf.Graph().as_default() as graph:
        tf.multiply(tf.placeholder(tf.float32, [None, 2], name="in"), 3.0, name="out")
    tf.train.write_graph(graph, str(tmp_path), "net.pb", as_text=False)
    net = gan.eval.get_graph_def_from_disk(str(tmp_path / "net.pb"))
    x = tf.constant([[1.0, 2.0]])
    alone = gan.eval.run_image_classifier(x, net, "in:0", "out:0")
    both = gan.eval.run_image_classifier(x, net, "in:0", ["out:0", "in:0"], scope="again")
    assert session.run(alone).tolist() == [[3, 6]] and alone.op.name == "RunClassifier/out"
    assert session.run(both[0]).tolist() == [[3, 6]] and both[0].op.name == "again/out"
    with pytest.raises(ValueError):
        gan.eval.run_image_classifier(x, net, "in:0", "nowhere:0")


def test_images_for_a_classifier(session):
    image = tf.constant([[[0], [128]], [[192], [64]]], tf.uint8)
    found = gan.eval.preprocess_image(image, 2, 2)
    assert session.run(found)[..., 0].tolist() == [[-1, 0], [0.5, -0.5]]
    assert gan.eval.preprocess_image(tf.zeros([2, 8, 8, 3])).shape.as_list() == [2, 299, 299, 3]


def test_the_distance_of_activations(session):
    random = np.random.default_rng(4)
    real, made = random.normal(size=(20, 4)), random.normal(1, 2, size=(36, 4))
    a, b = np.cov(real.T), np.cov(made.T)
    expected = np.sum((real.mean(0) - made.mean(0)) ** 2) + np.trace(a + b - 2 * scipy.linalg.sqrtm(a @ b).real)
    found = gan.eval.frechet_classifier_distance(tf.constant(real / 2), tf.constant(made / 2), lambda x: 2 * x, 2)
    assert session.run(found) == pytest.approx(expected, rel=1e-8)
    same = gan.eval.frechet_classifier_distance_from_activations(tf.constant(real), tf.constant(real))
    assert session.run(same) == pytest.approx(0, abs=1e-6)


def test_distances_of_means_and_variances(session):
    random = np.random.default_rng(6)
    real, made = random.normal(size=(20, 4)), random.normal(1, 2, size=(36, 4))
    means = np.sum((real.mean(0) - made.mean(0)) ** 2)
    spread = np.sum(real.var(0) + made.var(0) - 2 * np.sqrt(real.var(0) * made.var(0)))
    for kind, expected in (("mean_only", means), ("diagonal_only", means + spread)):
        distance = getattr(gan.eval, f"{kind}_frechet_classifier_distance_from_activations")
        assert session.run(distance(tf.constant(real), tf.constant(made))) == pytest.approx(expected, rel=1e-10)


def kernel_distance(real, made):
    """The unbiased estimate, pair by pair."""

    def kernel(x, y):
        return (np.dot(x, y) / len(x) + 1) ** 3

    def within(rows):
        return np.mean([kernel(x, y) for i, x in enumerate(rows) for j, y in enumerate(rows) if i != j])

    return within(real) + within(made) - 2 * np.mean([kernel(x, y) for x in real for y in made])


def test_distances_by_a_kernel(session):
    random = np.random.default_rng(7)
    real, made = random.normal(size=(11, 3)), random.normal(0.5, 1, size=(9, 3))
    # Blocks of at most four of eleven: 3, 4 and 4, and of nine: 3, 3 and 3.
    pairs = zip(np.split(real, [3, 7]), np.split(made, [3, 6]), strict=True)
    estimates = [kernel_distance(*pair) for pair in pairs]
    whole = session.run(
        gan.eval.kernel_classifier_distance_and_std_from_activations(tf.constant(real), tf.constant(made))
    )
    assert whole[0] == pytest.approx(kernel_distance(real, made), rel=1e-10) and np.isnan(whole[1])
    arguments = tf.constant(real / 2), tf.constant(made / 2), lambda x: 2 * x, 1, 4
    found = session.run(gan.eval.kernel_classifier_distance_and_std(*arguments))
    np.testing.assert_allclose(found, [np.mean(estimates), np.std(estimates, ddof=1) / np.sqrt(3)], rtol=1e-10)
    narrow = gan.eval.kernel_classifier_distance(*arguments, tf.float32)
    assert narrow.dtype == tf.float32 and session.run(narrow) == pytest.approx(found[0], rel=1e-4)
    alone = gan.eval.kernel_classifier_distance_from_activations(tf.constant(real), tf.constant(made), 4)
    assert session.run(alone) == pytest.approx(found[0], rel=1e-10)
    with pytest.raises(ValueError, match="float64 and float32"):
        gan.eval.kernel_classifier_distance_from_activations(tf.constant(real), tf.constant(made, tf.float32))


def test_grids_of_images(session):
    images = np.arange(6 * 2 * 3 * 1, dtype=np.float32).reshape(6, 2, 3, 1)
    expected = np.block([[images[3 * row + column, ..., 0] for column in range(3)] for row in range(2)])
    for found in (
        gan.eval.image_grid(tf.constant(images), (2, 3), (2, 3), 1),
        gan.eval.image_grid(tf.constant(images.reshape(6, 6)), (2, 3), (2, 3), 1),
        gan.eval.image_reshaper(tf.constant(images)),
    ):
        np.testing.assert_array_equal(session.run(found), expected[None, ..., None])
    assert gan.eval.image_reshaper(tf.constant(images), num_cols=4).shape.as_list() == [1, 4, 12, 1]
    with pytest.raises(ValueError, match="incompatible with minibatch"):
        gan.eval.image_grid(tf.constant(images), (2, 2), (2, 3), 1)


def test_summaries_of_models(session):
    images = np.random.default_rng(5).random((4, 3, 3, 1)).astype(np.float32)

    def flat(data, _):
        return tf.layers.dense(tf.layers.flatten(data), 1)

    model = gan.cyclegan_model(lambda x: tf.layers.conv2d(x, 1, 1), flat, images, images)
    gan.eval.add_gan_model_image_summaries(model, grid_size=2)
    before = len(tf.get_collection(tf.GraphKeys.SUMMARIES))
    gan.eval.add_gan_model_image_summaries(model.model_x2y, 2, model_summaries=False)
    added = tf.get_collection_ref(tf.GraphKeys.SUMMARIES)
    assert [each.op.type for each in added[before:]] == ["ImageSummary"] * 2
    del added[before:]
    gan.eval.add_image_comparison_summaries(model, display_diffs=True)
    gan.eval.add_regularization_loss_summaries(model)
    summary = tf.Summary.FromString(run(session, tf.summary.merge_all()))
    tags = [value.tag for value in summary.value]
    assert len(tags) == 2 * (2 + 4 + 1 + 2)
    assert "cyclegan_x2y_image_summaries/generated_data/image" in [tag.removesuffix("/0") for tag in tags]


def pictures(session, summary):
    """The pixels of the images that a summary has, by tag."""
    found = [value for value in tf.Summary.FromString(session.run(summary)).value if value.HasField("image")]
    return {value.tag: session.run(tf.image.decode_png(value.image.encoded_image_string)) for value in found}


def test_images_there_and_back(session):
    x, y = (np.full([2, 3, 3, 1], shade, np.uint8) for shade in (10, 200))

    def told(data, _):
        return tf.reduce_mean(tf.cast(data, tf.float32), [1, 2, 3])

    model = gan.cyclegan_model(lambda data: data + tf.constant(20, tf.uint8), told, x, y)
    gan.eval.add_cyclegan_image_summaries(model)
    gan.eval.add_image_comparison_summaries(model.model_x2y, display_diffs=True)
    found = pictures(session, tf.summary.merge_all())
    shades = {
        "x2y_image_comparison_summaries/image_comparison/image": [[10, 30, 50]],
        "y2x_image_comparison_summaries/image_comparison/image": [[200, 220, 240]],
        # What is made, though darker, is 170 away from what it should be.
        "image_comparison/image": [[10, 10], [30, 30], [200, 200], [170, 170]],
    }
    for tag, expected in shades.items():
        np.testing.assert_array_equal(found[tag][::3, ::3, 0], expected)
    with pytest.raises(ValueError, match="must be a `CycleGANModel`"):
        gan.eval.add_cyclegan_image_summaries(model.model_x2y)


@pytest.mark.parametrize("display_diffs", [False, True])
def test_images_in_each_domain(session, display_diffs):
    images = np.array([0.0, 8.0], np.float32).reshape(2, 1, 1, 1) * np.ones([1, 2, 2, 1], np.float32)
    model = gan.stargan_model(
        lambda data, domains: data + tf.reshape(tf.matmul(domains, [[1.0], [2.0]]), [-1, 1, 1, 1]),
        lambda data, count: (tf.reduce_mean(data, [1, 2, 3]), tf.zeros([2, count])),
        images,
        np.eye(2, dtype=np.float32),
    )
    gan.eval.add_stargan_image_summaries(model, display_diffs=display_diffs)
    found = pictures(session, tf.summary.merge_all())
    rows = [[0, 1, 2], [0, 1, 2]] if display_diffs else [[0, 1, 2]]
    later = [[8, 9, 10], [0, 1, 2]] if display_diffs else [[8, 9, 10]]
    for number, expected in enumerate((rows, later)):
        pixels = found[f"stargan_image_generation/image/{number}"][::2, ::2, 0]
        # Floats are scaled to fill the range of bytes.
        np.testing.assert_allclose(pixels / 255, np.array(expected) / np.max(expected), atol=0.01)


# -- training ------------------------------------------------------------------------------------------


def train_ops():
    noise = tf.random_normal([64, 2])
    model = gan.gan_model(generator, discriminator, tf.random_normal([64, 1], 3.0, 0.5), noise)
    losses = gan.losses.least_squares_generator_loss, gan.losses.least_squares_discriminator_loss
    loss = gan.gan_loss(model, *losses)
    optimizers = (tf.train.AdamOptimizer(0.01, 0.5) for _ in range(2))
    return model, gan.gan_train_ops(model, loss, *optimizers)


class Samples(tf.train.SessionRunHook):
    """Keeps what a generator makes in the last steps."""

    def __init__(self, data):
        self.data, self.seen = data, []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.data)

    def after_run(self, run_context, run_values):
        self.seen = [*self.seen[-19:], run_values.results]


def test_a_generator_learns_a_distribution():
    tf.set_random_seed(3)
    model, ops = train_ops()
    samples = Samples(model.generated_data)
    last = gan.gan_train(ops, None, hooks=[tf.train.StopAtStepHook(num_steps=600), samples])
    assert last == 600
    assert np.mean(samples.seen) == pytest.approx(3.0, abs=0.4) and 0.2 < np.std(samples.seen) < 0.9


@pytest.mark.parametrize(
    ("make", "expected"),
    [(gan.get_sequential_train_hooks, (3, 5)), (gan.get_joint_train_hooks, (3, 5))],
)
def test_steps_of_both_networks(make, expected):
    x, y = (tf.get_variable(name, [], initializer=tf.zeros_initializer()) for name in "xy")
    step = tf.train.get_or_create_global_step()
    ops = gan.GANTrainOps(x.assign_add(1), y.assign_add(1), step.assign_add(1))
    hooks = [*make(gan.GANTrainSteps(*expected))(ops), tf.train.StopAtStepHook(2)]
    counts = []
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        while not session.should_stop():
            session.run(ops.global_step_inc_op)
            counts.append(session.run_step_fn(lambda step_context: step_context.session.run([x, y])))
    assert tuple(counts[-1]) == tuple(2 * each for each in expected)


def test_steps_by_slim(tmp_path):
    _, ops = train_ops()
    loss = tf.contrib.slim.learning.train(
        ops,
        str(tmp_path),
        train_step_fn=gan.get_sequential_train_steps(gan.GANTrainSteps(1, 2)),
        global_step=tf.train.get_global_step(),
        number_of_steps=3,
    )
    assert np.isfinite(loss)


def test_updates_belong_to_a_network():
    model = build()
    loss = gan.gan_loss(model)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op(name="elsewhere"))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="unused update ops"):
        gan.gan_train_ops(model, loss, optimizer, optimizer)
    assert gan.gan_train_ops(model, loss, optimizer, optimizer, check_for_unused_update_ops=False)


def test_an_estimator(tmp_path):
    modes = []

    def moded(noise, mode):
        modes.append(mode)
        return generator(noise)

    estimator = gan.estimator.GANEstimator(
        str(tmp_path),
        moded,
        discriminator,
        gan.losses.wasserstein_generator_loss,
        gan.losses.wasserstein_discriminator_loss,
        lambda: tf.train.AdamOptimizer(0.01),
        tf.train.AdamOptimizer(0.01),
        add_summaries=gan.estimator.SummaryType.VARIABLES,
        get_eval_metric_ops_fn=lambda model: {"made": tf.metrics.mean(model.generated_data)},
    )

    def batches():
        return tf.data.Dataset.from_tensors((np.ones([4, 2], np.float32), REAL)).repeat(20)

    estimator.train(batches, steps=3)
    told = estimator.evaluate(batches)
    assert told["global_step"] == 3 and {"made", "generator_loss", "discriminator_loss"} <= set(told)
    assert told["loss"] == pytest.approx(told["generator_loss"] + told["discriminator_loss"], rel=1e-4)
    made = list(estimator.predict(lambda: tf.data.Dataset.from_tensors(np.ones([5, 2], np.float32))))
    assert np.shape(made) == (5, 1)
    keys = tf.estimator.ModeKeys
    assert modes == [keys.TRAIN, keys.EVAL, keys.PREDICT]
    with pytest.raises(ValueError, match="discriminator_loss_fn must be callable"):
        gan.estimator.GANEstimator(None, moded, discriminator, gan.losses.wasserstein_generator_loss)


def test_losses_of_an_estimator_that_take_the_model_alone(tmp_path):
    def batches():
        return tf.data.Dataset.from_tensors((np.ones([4, 2], np.float32), REAL))

    losses = lambda model: tf.constant(2.0), lambda model: tf.constant(3.0)
    settings = {"get_eval_metric_ops_fn": lambda model: [model], "use_loss_summaries": None}
    make = gan.estimator.GANEstimator
    plain = make(str(tmp_path), generator, discriminator, *losses, use_loss_summaries=None)
    assert plain.evaluate(batches, steps=1)["loss"] == 5
    with pytest.raises(TypeError, match="must return a dict"):
        make(str(tmp_path), generator, discriminator, *losses, **settings).evaluate(batches, steps=1)
    with pytest.raises(ValueError, match="must be True, False or None"):
        make(str(tmp_path), generator, discriminator, *losses, use_loss_summaries="no")
