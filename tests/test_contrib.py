"""`tf.contrib`: aliases of the library under the names, and with the names of variables, that TensorFlow 1 has."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest

import tfray as tf
import tfray.contrib.slim as slim
from tests.support.processes import PATIENCE_S
from tests.support.sessions import run_initialized as run
from tfray.errors import InvalidArgumentError

IMAGES = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype(np.float32)
ROWS = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


def names(variables=None):
    return [variable.op.name for variable in (tf.global_variables() if variables is None else variables)]


def test_it_loads_when_it_is_used():
    code = (
        "import sys, tfray as tf; assert 'tfray.contrib' not in sys.modules; "
        "assert 'contrib' in dir(tf); tf.contrib.layers; assert 'tfray.contrib.layers' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tf.__path__[0] + "/..", timeout=PATIENCE_S)


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match=r"tf\.contrib\.eager does not exist.*use tf\.Session"):
        _ = tf.contrib.eager
    with pytest.raises(AttributeError, match=r"there are .*layers.*slim"):
        _ = tf.contrib.nonsense
    assert {"layers", "slim", "framework", "training", "opt"} <= set(dir(tf.contrib))


def test_slim_has_all_layers_and_variables():
    """As in TensorFlow: ``slim.fully_connected`` is ``tf.contrib.layers.fully_connected``."""
    slim = tf.contrib.slim
    for home, names in (
        (tf.contrib.layers, [*tf.contrib.layers.__all__, "spatial_softmax", "summarize_weights", "conv3d_transpose"]),
        (tf.contrib.framework, ["add_model_variable", "assert_global_step", "global_variable", "local_variable"]),
    ):
        assert {name for name in names if getattr(slim, name, None) is not getattr(home, name)} == set()


def test_names_of_variables():
    net = slim.conv2d(IMAGES, 4, [3, 3])
    net = slim.conv2d(net, 4, [3, 3], normalizer_fn=slim.batch_norm)
    slim.conv2d_transpose(net, 2, 3, stride=2)
    slim.separable_conv2d(net, 2, 3)
    net = slim.flatten(slim.max_pool2d(net, [2, 2], scope="pool"))
    net = slim.fully_connected(net, 5)
    slim.fully_connected(net, 2, activation_fn=None, scope="logits", biases_initializer=None)
    slim.layer_norm(net)
    slim.bias_add(net)
    tf.contrib.layers.embed_sequence([[0, 1]], 3, 2)
    assert names() == [
        "Conv/weights",
        "Conv/biases",
        "Conv_1/weights",
        "Conv_1/BatchNorm/beta",
        "Conv_1/BatchNorm/moving_mean",
        "Conv_1/BatchNorm/moving_variance",
        "Conv2d_transpose/weights",
        "Conv2d_transpose/biases",
        "SeparableConv2d/depthwise_weights",
        "SeparableConv2d/pointwise_weights",
        "SeparableConv2d/biases",
        "fully_connected/weights",
        "fully_connected/biases",
        "logits/weights",
        "LayerNorm/beta",
        "LayerNorm/gamma",
        "BiasAdd/biases",
        "EmbedSequence/embeddings",
    ]
    assert slim.get_model_variables() == tf.model_variables() == tf.global_variables()


def test_arg_scope():
    @slim.add_arg_scope
    def shout(text, mark="!", times=1):
        return text + mark * times

    with slim.arg_scope([shout], mark="?"):
        assert shout("a") == "a?"
        with slim.arg_scope([shout], times=3) as both:
            assert shout("a") == "a???"
            assert shout("a", times=2) == "a??"
        assert shout("a") == "a?"
        assert slim.current_arg_scope() == {shout._key_op: {"mark": "?"}}
    assert shout("a") == "a!"
    with slim.arg_scope(both):
        assert shout("a") == "a???"
    assert slim.arg_scoped_arguments(shout) == ("mark", "times")
    assert slim.has_arg_scope(shout) and not slim.has_arg_scope(len)
    with pytest.raises(InvalidArgumentError, match="add_arg_scope"), slim.arg_scope([len], a=1):
        pass
    with pytest.raises(InvalidArgumentError, match="add_arg_scope"):
        slim.arg_scoped_arguments(len)
    with pytest.raises(InvalidArgumentError, match="either"), slim.arg_scope(both, a=1):
        pass


def test_a_scope_needs_a_list_of_functions():
    with pytest.raises(TypeError, match="takes a list of functions"), slim.arg_scope(slim.conv2d, stride=2):
        pass


def test_arg_scope_of_layers():
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_regularizer=slim.l2_regularizer(0.5),
        weights_initializer=tf.ones_initializer(),
        activation_fn=None,
    ):
        net = slim.conv2d(IMAGES, 2, [1, 1], scope="conv")
        out = slim.fully_connected(slim.flatten(net), 1, scope="fc")
    first, result, losses = run([net, out, tf.losses.get_regularization_losses()])
    np.testing.assert_allclose(first[..., 0], IMAGES.sum(-1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result[:, 0], 2 * IMAGES.sum((1, 2, 3)), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(losses, [0.25 * 6, 0.25 * 128])


def test_repeat_and_stack():
    net = slim.repeat(tf.constant(IMAGES), 2, slim.conv2d, 4, [3, 3], scope="conv1")
    net = slim.stack(slim.flatten(net), slim.fully_connected, [8, 4], scope="fc")
    assert net.shape.as_list() == [2, 4]
    assert names() == [
        f"{scope}/{part}"
        for scope in ("conv1/conv1_1", "conv1/conv1_2", "fc/fc_1", "fc/fc_2")
        for part in ("weights", "biases")
    ]
    slim.stack(tf.constant(IMAGES), slim.conv2d, [(4, [3, 3]), (2, [1, 1])], scope="core")
    assert "core/core_2/weights" in names()


def test_reuse_and_scopes():
    one = slim.fully_connected(ROWS, 3, scope="fc")
    two = slim.fully_connected(ROWS, 3, scope="fc", reuse=True)
    with tf.variable_scope("net"):
        slim.fully_connected(ROWS, 3, scope="fc")
    np.testing.assert_array_equal(*run([one, two]))
    assert names() == ["fc/weights", "fc/biases", "net/fc/weights", "net/fc/biases"]
    assert names(slim.get_variables("net")) == ["net/fc/weights", "net/fc/biases"]
    assert names(slim.get_variables_by_suffix("weights")) == ["fc/weights", "net/fc/weights"]
    assert names(slim.get_variables_by_name("biases", "net")) == ["net/fc/biases"]
    assert names(slim.get_variables_to_restore(exclude=["net"])) == ["fc/weights", "fc/biases"]
    assert names(slim.get_variables_to_restore(include=["net/fc/weights"])) == ["net/fc/weights"]
    assert names(slim.filter_variables(tf.global_variables(), ["weights"], ["net"])) == ["fc/weights"]
    assert slim.get_unique_variable("fc/biases").op.name == "fc/biases"
    with pytest.raises(InvalidArgumentError, match="no variable"):
        slim.get_unique_variable("fc")


def test_collections():
    outputs = slim.fully_connected(
        ROWS, 3, outputs_collections="ends", variables_collections={"weights": ["mine"]}, scope="fc"
    )
    assert tf.get_collection("ends") == [outputs]
    assert names(tf.get_collection("mine")) == ["fc/weights"]


@pytest.mark.parametrize(
    ("layer", "collected"),
    [
        (lambda **kwargs: slim.conv2d(IMAGES, 2, 3, scope="a", **kwargs), {"weights": ["a/weights"]}),
        (
            lambda **kwargs: slim.separable_conv2d(IMAGES, 2, 3, 1, scope="a", **kwargs),
            {"weights": ["a/depthwise_weights", "a/pointwise_weights"], "biases": ["a/biases"]},
        ),
        (lambda **kwargs: slim.bias_add(IMAGES, scope="a", **kwargs), {"biases": ["a/biases"]}),
        (lambda **kwargs: slim.batch_norm(IMAGES, scope="a", **kwargs), {"moving_mean": ["a/moving_mean"]}),
        (lambda **kwargs: tf.contrib.layers.layer_norm(IMAGES, scope="a", **kwargs), {"gamma": ["a/gamma"]}),
        (lambda **kwargs: tf.contrib.layers.instance_norm(IMAGES, scope="a", **kwargs), {"beta": ["a/beta"]}),
        (
            lambda **kwargs: tf.contrib.layers.group_norm(IMAGES, 1, scope="a", **kwargs),
            {"beta": ["a/beta"], "gamma": ["a/gamma"]},
        ),
    ],
    ids=["conv2d", "separable_conv2d", "bias_add", "batch_norm", "layer_norm", "instance_norm", "group_norm"],
)
def test_variables_are_collected_by_name(layer, collected):
    given = {name: [f"of {name}"] for name in collected}
    layer(variables_collections=given)
    layer(variables_collections=given, reuse=True)
    for name, expected in collected.items():
        assert names(tf.get_collection(f"of {name}")) == expected, "once, though the layer was used twice"
    everywhere = {variable.op.name for variable in tf.global_variables()}
    assert all(everywhere >= set(expected) for expected in collected.values())


def test_what_a_getter_gives_for_a_variable_is_collected():
    def doubled(getter, *args, **kwargs):
        return 2 * getter(*args, **kwargs)

    with tf.variable_scope("net", custom_getter=doubled):
        slim.fully_connected(ROWS, 3, variables_collections={"weights": ["mine"]})
    (weights,) = tf.get_collection("mine")
    assert isinstance(weights, tf.Tensor)


def test_a_model_variable_is_a_global_one_too():
    variable = slim.model_variable("weights", [2], collections=["mine"])
    for key in ("mine", tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES):
        assert tf.get_collection(key) == [variable]


@pytest.mark.parametrize("is_training", [True, False])
def test_batch_norm(is_training):
    outputs = slim.batch_norm(ROWS, is_training=is_training, scale=True, decay=0.5)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == (2 if is_training else 0)
    result = run(outputs)
    expected = (ROWS - ROWS.mean(0)) / np.sqrt(ROWS.var(0) + 1e-3) if is_training else ROWS / np.sqrt(1.001)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("fused", [None, True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_averages_of_rows(fused, data_format):
    outputs = slim.batch_norm(ROWS, 0.5, fused=fused, data_format=data_format, updates_collections=None)
    (variance,) = slim.get_variables_by_suffix("moving_variance")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(outputs)
        # What is fused, as in TensorFlow, averages the unbiased variance.
        expected = (1 + ROWS.var(0, ddof=0 if fused is False else 1)) / 2
        np.testing.assert_allclose(session.run(variance), expected, rtol=1e-4)
    np.testing.assert_allclose(found, (ROWS - ROWS.mean(0)) / np.sqrt(ROWS.var(0) + 1e-3), rtol=1e-3, atol=1e-4)


def test_batch_norm_that_is_corrected():
    outputs = slim.batch_norm(ROWS, renorm=True, renorm_clipping={"rmax": 1.0, "rmin": 1.0, "dmax": 0.0})
    scaled = slim.batch_norm(ROWS, adjustment=lambda shape: (tf.fill([1, 4], 2.0), tf.fill([1, 4], 3.0)))
    plain = slim.batch_norm(ROWS)
    found, twice, expected = run([outputs, scaled, plain])
    # With corrections of 1 and 0 nothing is corrected.
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(twice, 2 * expected + 3, rtol=1e-3, atol=1e-4)
    assert [v.op.name for v in slim.get_variables_by_suffix("renorm_mean")] == ["BatchNorm/renorm_mean"]


def test_batch_norm_that_updates_itself():
    outputs = slim.batch_norm(ROWS, updates_collections=None, decay=0.5)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    (mean,) = slim.get_variables_by_suffix("moving_mean")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(outputs)
        np.testing.assert_allclose(session.run(mean), ROWS.mean(0) / 2, rtol=1e-4)


def test_small_functions():
    embedded = tf.contrib.layers.embed_sequence([[2, 0]], 3, 4, initializer=tf.ones_initializer())
    results = run(
        [
            slim.layer_norm(ROWS),
            slim.unit_norm(ROWS, 1),
            slim.one_hot_encoding([0, 2], 3),
            slim.softmax(ROWS),
            slim.dropout(ROWS, is_training=False),
            slim.avg_pool2d(IMAGES, 2),
            embedded,
            slim.fully_connected(ROWS, 2, weights_initializer=tf.ones_initializer()),
        ]
    )
    np.testing.assert_allclose(results[0].mean(1), 0, atol=1e-5)
    np.testing.assert_allclose(results[0].std(1), 1, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(results[1], axis=1), 1, rtol=1e-5)
    assert results[2].tolist() == [[1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(results[3].sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(results[4], ROWS)
    np.testing.assert_allclose(results[5], IMAGES.reshape(2, 4, 2, 4, 2, 3).mean((2, 4)), rtol=1e-4, atol=1e-6)
    assert results[6].tolist() == [[[1] * 4] * 2]
    np.testing.assert_allclose(results[7][:, 0], np.maximum(ROWS.sum(1), 0), rtol=1e-5)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_instance_norm(data_format):
    images = IMAGES if data_format == "NHWC" else np.moveaxis(IMAGES, -1, 1)
    spatial = (1, 2) if data_format == "NHWC" else (2, 3)
    outputs = tf.contrib.layers.instance_norm(images, data_format=data_format)
    assert names() == ["InstanceNorm/beta", "InstanceNorm/gamma"]
    expected = images - images.mean(spatial, keepdims=True)
    expected /= np.sqrt(images.var(spatial, keepdims=True) + 1e-6)
    np.testing.assert_allclose(run(outputs), expected, rtol=1e-3, atol=1e-4)


def test_vocabularies(tmp_path):
    learn = tf.contrib.learn
    texts = ["the cat sat", "the dog sat down", "a cat"]
    processor = learn.preprocessing.VocabularyProcessor(4)
    rows = np.array(list(processor.fit_transform(texts)))
    assert rows.tolist() == [[1, 2, 3, 0], [1, 4, 3, 5], [6, 2, 0, 0]]
    assert len(processor.vocabulary_) == 7
    assert next(processor.transform(["the bird sat on a mat"])).tolist() == [1, 0, 3, 0]
    assert list(processor.reverse(rows[:1])) == ["the cat sat <UNK>"]
    processor.save(str(tmp_path / "vocabulary"))
    again = learn.preprocessing.VocabularyProcessor.restore(str(tmp_path / "vocabulary"))
    assert np.array(list(again.transform(texts))).tolist() == rows.tolist()
    rare = learn.preprocessing.VocabularyProcessor(4, min_frequency=1).fit(texts)
    assert len(rare.vocabulary_) == 4
    (tmp_path / "other").write_text("{}")
    with pytest.raises(InvalidArgumentError, match="no vocabulary"):
        learn.preprocessing.VocabularyProcessor.restore(str(tmp_path / "other"))
    assert learn.ModeKeys.TRAIN == "train"


def test_initializers():
    values = run(
        [
            tf.contrib.layers.xavier_initializer()([300, 100]),
            tf.contrib.layers.xavier_initializer_conv2d(uniform=False)([300, 100]),
            tf.contrib.layers.variance_scaling_initializer()([300, 100]),
            tf.contrib.layers.variance_scaling_initializer(1.0, "FAN_OUT", True)([300, 100]),
        ]
    )
    for value, variance in zip(values, [2 / 400, 2 / 400, 2 / 300, 1 / 100], strict=True):
        assert value.var() == pytest.approx(variance, rel=0.05)
    assert abs(values[0]).max() <= np.sqrt(6 / 400)
    make = tf.contrib.layers.variance_scaling_initializer
    for wrong in (lambda: make(dtype=tf.int32), lambda: make()([], dtype=tf.int32)):
        with pytest.raises(TypeError, match="Cannot create initializer for non-floating point type"):
            wrong()
    with pytest.raises(TypeError, match="Unknown mode fan_in"):
        make(mode="fan_in")


def test_losses_take_predictions_first():
    values = run(
        [
            slim.losses.mean_squared_error(tf.constant([1.0]), tf.constant([3.0])),
            tf.contrib.losses.softmax_cross_entropy(tf.constant([[0.0, 0.0]]), [[1.0, 0.0]]),
            slim.losses.get_total_loss(),
        ]
    )
    np.testing.assert_allclose(values, [4.0, np.log(2), 4 + np.log(2)], rtol=1e-5)


@pytest.mark.parametrize("how", ["slim", "layers"])
def test_training(how):
    x = tf.constant(ROWS)
    target = ROWS @ np.array([[1.0], [-2.0], [0.5], [0.0]], np.float32)
    loss = tf.losses.mean_squared_error(target, slim.fully_connected(x, 1, activation_fn=None))
    step = tf.contrib.framework.get_or_create_global_step()
    if how == "slim":
        train_op = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.1), clip_gradient_norm=5.0)
    else:
        train_op = tf.contrib.layers.optimize_loss(
            loss,
            step,
            0.1,
            "Adam",
            clip_gradients=5.0,
            gradient_multipliers={"fully_connected/biases": 2.0},
            learning_rate_decay_fn=lambda rate, at: tf.train.exponential_decay(rate, at, 100, 0.9),
        )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run(train_op) for _ in range(150)]
        assert session.run(step) == 150
    assert losses[-1] < 0.05 * losses[0]


def test_optimizers_by_other_means():
    var = tf.Variable(1.0)
    for optimizer in (
        tf.train.MomentumOptimizer(0.1, 0.9),
        tf.train.AdagradOptimizer,
        lambda rate: tf.train.GradientDescentOptimizer(rate),
        *tf.contrib.layers.OPTIMIZER_CLS_NAMES,
    ):
        run(tf.contrib.layers.optimize_loss(tf.square(var), None, 0.1, optimizer))
    with pytest.raises(InvalidArgumentError, match="no optimizer 'Magic'"):
        tf.contrib.layers.optimize_loss(tf.square(var), None, 0.1, "Magic")


def test_hparams():
    hparams = tf.contrib.training.HParams(rate=0.1, layers=[64, 32], name="relu", deep=False, steps=3)
    assert hparams.parse("rate=1e-2, layers=[1,2,3],name=tanh,deep=true,steps=7") is hparams
    assert hparams.values() == {"rate": 0.01, "layers": [1, 2, 3], "name": "tanh", "deep": True, "steps": 7}
    hparams.layers = [5]
    hparams.parse("layers[2]=9").rate = 2
    assert (hparams.layers, hparams.rate, hparams.get("none", 4)) == ([5, 5, 9], 2.0, 4)
    assert isinstance(hparams.rate, float)
    assert tf.contrib.training.HParams(rate=0.5).parse_json(hparams.to_json()[:0] + '{"rate": 1}').rate == 1.0
    hparams.add_hparam("more", "x")
    assert "more" in hparams and "HParams(" in repr(hparams)
    hparams.del_hparam("more")
    assert "more" not in hparams
    for wrong in ("nothing=1", "steps=1.5", "deep=maybe", "rate", "name=[a]"):
        with pytest.raises(ValueError, match=r"Unknown hyperparameter|Could not parse|Malformed|Must not pass a list"):
            hparams.parse(wrong)
    with pytest.raises(ValueError, match="exists already"):
        hparams.add_hparam("rate", 1)


# -- conditional random fields -------------------------------------------------------------------------


SCORES = np.random.default_rng(2).normal(size=(3, 4, 3)).astype(np.float32)
TRANSITIONS = np.random.default_rng(3).normal(size=(3, 3)).astype(np.float32)
LENGTHS = [4, 1, 3]


def scores_of_all(index):
    """Every sequence of tags of a sample, and its score."""
    length = LENGTHS[index]
    return {
        tags: sum(SCORES[index, step, tag] for step, tag in enumerate(tags))
        + sum(TRANSITIONS[pair] for pair in itertools.pairwise(tags))
        for tags in itertools.product(range(3), repeat=length)
    }


def test_a_random_field_agrees_with_all_sequences():
    crf, tags = tf.contrib.crf, np.array([[0, 2, 1, 1], [2, 0, 0, 0], [1, 1, 0, 2]])
    likelihood, transitions = crf.crf_log_likelihood(SCORES, tags, LENGTHS, TRANSITIONS)
    score = crf.crf_sequence_score(SCORES, tags, LENGTHS, TRANSITIONS)
    decoded, best = crf.crf_decode(SCORES, TRANSITIONS, LENGTHS)
    assert transitions is TRANSITIONS
    found = run([likelihood, score, crf.crf_log_norm(SCORES, LENGTHS, TRANSITIONS), decoded, best])
    for index, length in enumerate(LENGTHS):
        every = scores_of_all(index)
        norm = np.log(np.sum(np.exp(list(every.values()))))
        own = every[tuple(tags[index, :length])]
        winner = max(every, key=every.get)
        np.testing.assert_allclose(
            [found[i][index] for i in (0, 1, 2, 4)], [own - norm, own, norm, every[winner]], 1e-4
        )
        assert found[3][index].tolist() == [*winner, *[0] * (4 - length)]
        by_array = crf.viterbi_decode(SCORES[index, :length], TRANSITIONS)
        assert by_array[0] == list(winner) and by_array[1] == pytest.approx(every[winner])


def test_a_random_field_has_transitions_of_its_own_and_takes_empty_sequences():
    likelihood, transitions = tf.contrib.crf.crf_log_likelihood(SCORES, np.zeros((3, 4), int), [4, 0, 3])
    assert transitions.op.name == "transitions" and transitions.shape.as_list() == [3, 3]
    gradient = tf.gradients(likelihood, transitions)[0]
    found = run([likelihood, gradient])
    assert found[0][1] == 0 and found[0][0] < 0 and np.isfinite(found[1]).all() and np.abs(found[1]).max() > 0


def test_a_random_field_of_several_allowed_tags():
    allowed = np.random.default_rng(5).random(SCORES.shape) < 0.6
    allowed[:, :, 1] = True
    score = tf.contrib.crf.crf_multitag_sequence_score(SCORES, allowed, LENGTHS, TRANSITIONS)
    likelihood, transitions = tf.contrib.crf.crf_multitag_log_likelihood(SCORES, allowed, LENGTHS, TRANSITIONS)
    assert transitions is TRANSITIONS
    found = run([score, likelihood])
    for index in range(len(LENGTHS)):
        every = scores_of_all(index)
        kept = [value for tags, value in every.items() if all(allowed[index, i, tag] for i, tag in enumerate(tags))]
        wanted, norm = (np.log(np.sum(np.exp(values))) for values in (kept, list(every.values())))
        np.testing.assert_allclose([each[index] for each in found], [wanted, wanted - norm], 1e-4, 1e-5)


def test_models_are_analysed(capsys):
    tf.get_variable("weights", [2, 3])
    tf.get_variable("counts", [4], tf.int64)
    assert slim.model_analyzer.analyze_vars(tf.global_variables(), print_info=True) == (10, 56)
    assert "weights:0 (float32 2x3) [6, bytes: 24]" in capsys.readouterr().out
    with tf.Graph().as_default() as graph:
        tf.zeros([2, 3], name="zeros")
        assert slim.model_analyzer.analyze_ops(graph, print_info=True) >= 6
    assert "zeros -> (" in capsys.readouterr().out


def test_deprecated_summaries_are_those_of_the_facade():
    assert tf.contrib.deprecated.scalar_summary is tf.scalar_summary


@pytest.mark.parametrize(
    ("logits", "expected"),
    [  # the values of the paper's formula: the nearest point of the simplex
        ([[0.0, 0.0]], [[0.5, 0.5]]),
        ([[2.0, 0.0, 0.0]], [[1, 0, 0]]),
        ([[0.5, 0.2, -1.0]], [[0.65, 0.35, 0]]),
        ([[0.1, 0.2, 0.3], [1.0, 0.9, 0.8]], [[7 / 30, 1 / 3, 13 / 30], [13 / 30, 1 / 3, 7 / 30]]),
    ],
)
def test_sparsemax(session, logits, expected):
    from tfray.contrib.sparsemax import sparsemax, sparsemax_loss

    x = tf.constant(logits)
    made = sparsemax(x)
    labels = np.eye(len(logits[0]), dtype=np.float32)[: len(logits)]
    loss = sparsemax_loss(x, made, labels)
    got, losses, gradient = session.run([made, loss, tf.gradients(loss, x, stop_gradients=[made])[0]])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gradient, got - labels, atol=1e-6)
    assert (losses >= -1e-6).all() and losses.shape == (len(logits),)


def test_modules_that_are_others():
    assert tf.contrib.keras is tf.keras and tf.contrib.signal.stft is tf.signal.stft


def test_summaries_of_tensors_and_collections():
    layers = tf.contrib.layers
    scalar = layers.summarize_tensor(tf.constant(1.0, name="one"))
    histogram = layers.summarize_tensor(tf.ones([3], name="three"), "tagged")
    activation = layers.summarize_activation(tf.nn.relu(tf.constant([1.0, -1.0]), name="act"))
    variables = [tf.get_variable(name, [2]) for name in ("a", "b")]
    found = layers.summarize_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "b")
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, tf.ones([2], name="kept"))
    names = [each.op.name for each in (scalar, histogram, activation, *found)]
    names += [each.op.name for each in (*layers.summarize_variables(), *layers.summarize_activations())]
    assert names == [
        *("one_summary", "tagged", "act/activation"),
        *("b_summary", "a_summary", "b_summary_1", "kept/activation"),
    ]
    assert layers.summarize_tensors([variables[0], "text"])[1] is None
    assert len(layers.summarize_weights() + layers.summarize_biases()) == 0
    assert tf.summary.merge_all() is not None


def test_summaries_say_what_an_activation_cuts_off():
    inputs = tf.constant([-1.0, 0.0, 2.0, 6.0, 7.0])
    tf.contrib.layers.summarize_activation(tf.nn.relu6(inputs, name="six"))
    found = tf.Summary.FromString(run(tf.summary.merge_all()))
    fractions = {value.tag: value.simple_value for value in found.value if value.tag != "six/activation"}
    assert fractions == {"six/zeros": pytest.approx(0.2), "six/sixes": pytest.approx(0.2)}


def test_the_largest_of_groups(session):
    values = np.arange(12, dtype=np.float32).reshape(2, 6)
    made = tf.contrib.layers.maxout(tf.placeholder_with_default(values, [None, 6]), 3)
    assert made.shape.as_list() == [None, 3]
    assert session.run(made).tolist() == [[1, 3, 5], [7, 9, 11]]
    assert session.run(tf.contrib.layers.maxout(values, 1, axis=0)).tolist() == [values[1].tolist()]
    with pytest.raises(ValueError, match="is not a multiple of num_units"):
        tf.contrib.layers.maxout(values, 4)


def test_helpers_of_the_framework(session):
    framework = tf.contrib.framework
    with tf.name_scope("outer"):
        assert framework.get_name_scope() == "outer"
    assert framework.is_tensor(tf.constant(1)) and not framework.is_tensor(1)
    assert framework.smart_cond(True, lambda: 1, lambda: 2) == 1 and framework.TensorSpec is tf.TensorSpec
    assert session.run(framework.argsort([3, 1, 2])).tolist() == [1, 2, 0]

    @framework.deprecated("2020-01-01", "Use another.")
    @framework.deprecated_args("2020-01-01", "Use another.", "x")
    def function(x):
        return x

    assert function(3) == 3


def test_slim_has_what_programs_take_from_it(session, tmp_path):
    """The names of ``tf.contrib.layers`` and of ``tf.contrib.framework``'s variables are slim's too."""
    slim = tf.contrib.slim
    initializer = slim.initializers.xavier_initializer()
    regularizer = slim.regularizers.l2_regularizer(0.1)
    net = slim.layers.fully_connected(tf.ones([1, 2]), 3, None, None, None, initializer, regularizer, scope="fc")
    assert slim.assign_from_checkpoint_fn is tf.contrib.framework.assign_from_checkpoint_fn
    assert slim.metrics.streaming_accuracy is tf.contrib.metrics.streaming_accuracy
    assert {"optimize_loss", "summarize_collection", "maxout", "embed_sequence"} <= set(dir(slim))
    values = {"fc/weights": np.ones([2, 3]), "fc/biases": [1.0, 2.0, 3.0]}
    slim.assign_from_values_fn(values)(session)
    assert session.run(net).tolist() == [[3, 4, 5]]
    operation, feeds = slim.assign_from_values({"fc/biases": [0.0, 0.0, 0.0]})
    session.run(operation, feeds)
    assert session.run(net).tolist() == [[2, 2, 2]]
    with pytest.raises(ValueError, match="has shape"):
        slim.assign_from_values({"fc/biases": [0.0]})


def test_layers_of_volumes():
    x = tf.placeholder(tf.float32, [None, 6, 8, 10, 2])
    with slim.arg_scope([slim.conv3d], normalizer_fn=slim.batch_norm, activation_fn=tf.nn.elu):
        y = slim.conv3d(x, 4, [3, 3, 1], stride=2, padding="VALID", scope="first")
    assert y.shape.as_list() == [None, 2, 3, 5, 4] and y.op.type == "Elu"
    assert [v.op.name for v in tf.trainable_variables()] == ["first/weights", "first/BatchNorm/beta"]
    planes = tf.transpose(x, [0, 4, 1, 2, 3])
    value = np.random.default_rng(0).normal(size=[1, 6, 8, 10, 2]).astype(np.float32)
    pools = slim.max_pool3d(x, 2), slim.max_pool3d(planes, 2, data_format="NCDHW"), slim.avg_pool3d(x, [2, 2, 2], 2)
    with tf.Session() as session:
        largest, last, means = session.run(pools, {x: value})
    blocks = value.reshape(1, 3, 2, 4, 2, 5, 2, 2)
    np.testing.assert_allclose(largest, blocks.max((2, 4, 6)))
    np.testing.assert_allclose(last, largest.transpose(0, 4, 1, 2, 3))
    np.testing.assert_allclose(means, blocks.mean((2, 4, 6)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("channels_axis", "axes"), [(-1, (-3, -2)), (1, (2, -1)), (1, (-1,))])
def test_groups_of_channels_are_normalized(channels_axis, axes):
    value = np.random.default_rng(0).normal(2, 3, [2, 6, 6, 6]).astype(np.float32)
    x = tf.placeholder(tf.float32, [None, *[6 if place == channels_axis % 4 else None for place in (1, 2, 3)]])
    y = slim.group_norm(x, 3, channels_axis, axes, param_initializers={"beta": tf.ones_initializer()})
    assert {v.op.name: v.shape.as_list() for v in tf.trainable_variables()} == {
        "GroupNorm/beta": [6],
        "GroupNorm/gamma": [6],
    }
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(y, {x: value})
    grouped = np.moveaxis(value, channels_axis, -1).reshape(2, 6, 6, 3, 2)
    rest = [axis % 4 for axis in axes]
    along = (*(axis - (axis > channels_axis % 4) for axis in rest), 4)
    expected = (grouped - grouped.mean(along, keepdims=True)) / np.sqrt(grouped.var(along, keepdims=True) + 1e-6) + 1
    np.testing.assert_allclose(
        np.moveaxis(found, channels_axis, -1), expected.reshape(2, 6, 6, 6), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    "arguments", [{"groups": 4}, {"groups": 0}, {"groups": 2, "channels_axis": -2}, {"groups": 2, "channels_axis": 5}]
)
def test_groups_that_make_no_sense(arguments):
    with pytest.raises(ValueError):
        slim.group_norm(tf.ones([2, 3, 3, 6]), **arguments)
