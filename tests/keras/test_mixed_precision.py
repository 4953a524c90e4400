"""Policies of mixed precision and the optimizer that scales the loss.

Dtypes and numbers are those of TensorFlow 1.15 after its `base_layer_utils.enable_v2_dtype_behavior()`: its layers then
cast their inputs. Without it they refuse those of another dtype, and there is no global policy with a dtype.
"""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.keras import layers

mixed_precision = tf.keras.mixed_precision.experimental
Policy, LossScaleOptimizer = mixed_precision.Policy, mixed_precision.LossScaleOptimizer
RNG = np.random.RandomState(0)
SEQUENCES = RNG.randn(4, 6, 3).astype(np.float32)
IMAGES = RNG.randn(2, 8, 8, 3).astype(np.float32)


@pytest.fixture(autouse=True)
def policies():
    yield
    mixed_precision.set_policy(None)


def names(tensors):
    return [tensor.dtype.base_dtype.name for tensor in tensors]


# -- policies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "compute", "variables", "scale"),
    [
        ("mixed_float16", "float16", "float32", tf.train.experimental.DynamicLossScale),
        ("mixed_bfloat16", "bfloat16", "float32", type(None)),
        ("float16_with_float32_vars", "float16", "float32", type(None)),
        ("float64", "float64", "float64", type(None)),
        ("infer", None, None, type(None)),
        ("infer_with_float32_vars", None, "float32", type(None)),
    ],
)
def test_what_a_policy_says(name, compute, variables, scale):
    found = Policy(name)
    assert (found.name, found.compute_dtype, found.variable_dtype) == (name, compute, variables)
    assert found.should_cast_variables == (compute != variables) and isinstance(found.loss_scale, scale)
    assert repr(found) == f'<Policy "{name}", loss_scale={found.loss_scale}>'


def test_other_names_of_policies():
    assert Policy("float32_with_float32_vars").name == "float32"
    assert Policy("infer_float32_vars").name == "infer_with_float32_vars"


def test_a_policy_has_a_loss_scale():
    assert Policy("mixed_float16", loss_scale=None).loss_scale is None
    assert isinstance(Policy("float16", loss_scale=8.0).loss_scale, tf.train.experimental.FixedLossScale)
    with pytest.raises(ValueError, match="loss_scale is 'no'"):
        Policy("float16", loss_scale="no")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nonsense", ValueError, "Cannot convert value nonsense"),
        ("odd_with_float32_vars", ValueError, "'odd' is no dtype"),
        (tf.float16, TypeError, "'name' must be a string"),
    ],
)
def test_policies_that_there_are_not(name, error, message):
    for make in (Policy, mixed_precision.set_policy):
        with pytest.raises(error, match=message):
            make(name)


def test_the_global_policy():
    assert mixed_precision.global_policy().name == "infer"
    mixed_precision.set_policy("mixed_float16")
    assert mixed_precision.global_policy().name == "mixed_float16"
    own = Policy("float64")
    mixed_precision.set_policy(own)
    assert mixed_precision.global_policy() is own
    mixed_precision.set_policy(None)
    assert mixed_precision.global_policy().name == "infer"


# -- layers ------------------------------------------------------------------------------------------------

KINDS = {
    "Dense": (lambda **options: layers.Dense(4, **options), SEQUENCES),
    "Conv2D": (lambda **options: layers.Conv2D(4, 3, **options), IMAGES),
    "Conv2DTranspose": (lambda **options: layers.Conv2DTranspose(4, 3, **options), IMAGES),
    "SeparableConv2D": (lambda **options: layers.SeparableConv2D(4, 3, **options), IMAGES),
    "BatchNormalization": (lambda **options: layers.BatchNormalization(**options), IMAGES),
    "LSTM": (lambda **options: layers.LSTM(4, **options), SEQUENCES),
    "GRU": (lambda **options: layers.GRU(4, **options), SEQUENCES),
    "PReLU": (lambda **options: layers.PReLU(**options), SEQUENCES),
    "LocallyConnected1D": (lambda **options: layers.LocallyConnected1D(2, 3, **options), SEQUENCES),
    "Embedding": (lambda **options: layers.Embedding(5, 3, **options), np.array([[1, 2], [0, 1]])),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_compute_in_half_precision_with_variables_of_float32(kind, dtype):
    make, values = KINDS[kind]
    inputs = tf.constant(values) if values.dtype == np.int64 else tf.cast(values, dtype)
    layer = make(dtype=Policy("mixed_float16"))
    outputs = layer(inputs)
    gradients = tf.gradients(tf.reduce_sum(tf.cast(outputs, tf.float32)), layer.trainable_variables)
    assert outputs.dtype == tf.float16 and layer.dtype == tf.float32 and layer.get_config()["dtype"] == "float32"
    assert set(names([*layer.variables, *gradients])) == {"float32"}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        half, found, kept = session.run([outputs, gradients, layer.variables])
        plain = make()
        wide = plain(tf.cast(inputs, tf.float32) if values.dtype != np.int64 else inputs)
        for variable, value in zip(plain.variables, kept, strict=True):
            variable.load(value, session)
        np.testing.assert_allclose(half, session.run(wide), rtol=0.02, atol=0.02)
        assert all(value.dtype == np.float32 for value in kept)
    assert all(getattr(each, "values", each).dtype == np.float32 for each in found)


def test_a_global_policy_is_for_layers_without_a_dtype():
    mixed_precision.set_policy("mixed_float16")
    inputs = tf.constant(SEQUENCES)
    hidden = layers.Dense(4)(inputs)
    assert hidden.dtype == tf.float16
    assert layers.Activation("relu")(inputs).dtype == layers.Dropout(0.5)(inputs).dtype == tf.float16
    assert layers.Activation("softmax", dtype="float32")(hidden).dtype == tf.float32
    assert layers.Activation("relu", autocast=False)(inputs).dtype == tf.float32
    assert layers.TimeDistributed(layers.Dense(2))(inputs).dtype == tf.float16
    # Their layers are made anew from descriptions, in which there is the dtype of variables.
    assert layers.Bidirectional(layers.GRU(4))(inputs).dtype == tf.float32
    assert layers.Embedding(5, 3)(tf.constant([1, 2])).dtype == tf.float32
    assert layers.Input((3,)).dtype == tf.float32


def test_policies_that_are_inferred():
    mixed_precision.set_policy("infer_with_float32_vars")
    for dtype in (tf.float32, tf.float16):
        layer = layers.Dense(4)
        assert layer(tf.cast(SEQUENCES, dtype)).dtype == dtype and names(layer.variables) == ["float32"] * 2
        assert layers.Activation("relu", dtype="float32")(tf.cast(SEQUENCES, dtype)).dtype == dtype
    layer = layers.Dense(4, dtype=Policy("infer"))
    assert layer(tf.cast(SEQUENCES, tf.float16)).dtype == tf.float16 and names(layer.variables) == ["float16"] * 2


class Scale(layers.Layer):
    """A program's own layer."""

    def build(self, input_shape):
        self.factor = self.add_weight("factor", [input_shape[-1]])
        self.shift = self.add_weight("shift", [input_shape[-1]], experimental_autocast=False)
        super().build(input_shape)

    def call(self, inputs):
        self.seen = self.factor.dtype, self.factor.true_dtype, self.shift.dtype
        return inputs * self.factor + tf.cast(self.shift, inputs.dtype)


def test_variables_are_read_as_half_precision_in_calls_alone():
    layer = Scale(dtype=Policy("mixed_float16"))
    assert layer(tf.constant(SEQUENCES)).dtype == tf.float16
    assert layer.seen == (tf.float16, tf.float32, tf.float32)
    assert layer.factor.dtype == tf.float32 and (layer.factor * 2).dtype == tf.float32
    signature = layer.compute_output_signature(tf.TensorSpec([4, 6, 3], tf.float32))
    assert signature.dtype == tf.float16 and signature.shape.as_list() == [4, 6, 3]


# -- the optimizer -----------------------------------------------------------------------------------------


def half_model():
    return tf.keras.Sequential(
        [
            layers.Dense(8, "tanh", input_shape=(5,), kernel_initializer=tf.constant_initializer(FIRST)),
            layers.Dense(1, kernel_initializer=tf.constant_initializer(LAST)),
            layers.Activation("linear", dtype="float32"),
        ]
    )


DRAWN = np.random.RandomState(0)
X = DRAWN.randn(64, 5).astype(np.float32)
Y = (X @ DRAWN.randn(5, 1)).astype(np.float32)
FIRST, LAST = DRAWN.randn(5, 8).astype(np.float32) * 0.3, DRAWN.randn(8, 1).astype(np.float32) * 0.3


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (lambda: "mixed_float16", "LossScaleOptimizer"),
        (lambda: Policy("mixed_float16", loss_scale=8.0), "LossScaleOptimizer"),
        (lambda: Policy("mixed_float16", loss_scale=None), "SGD"),
    ],
)
def test_models_scale_their_losses_as_their_policy_says(policy, kind):
    mixed_precision.set_policy(policy())
    model = half_model()
    model.compile(tf.keras.optimizers.SGD(0.05, momentum=0.9), "mse")
    assert type(model.optimizer).__name__ == kind and names(each.output for each in model.layers)[:2] == ["float16"] * 2
    losses = [model.train_on_batch(X, Y) for _ in range(5)]
    np.testing.assert_allclose(losses, [3.4685, 3.15924, 2.59744, 1.84792, 1.02328], rtol=1e-3)
    weights = model.get_weights()
    first = [-0.17526, -0.09204, 0.75672, -0.13382, 0.53903, 0.16964, -0.11896, 0.04203]
    np.testing.assert_allclose(weights[0][0], first, atol=1e-3)
    assert {each.dtype for each in weights} == {np.dtype(np.float32)}
    assert tf.keras.backend.get_value(model.optimizer.iterations) == 5
    assert model.optimizer.get_slot_names() == ["momentum"] and len(model.optimizer.weights) == 5
    history = model.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], [0.52868, 0.64984], rtol=5e-3)
    assert model.predict(X).dtype == np.float32


def test_an_optimizer_that_scales_already_stays():
    mixed_precision.set_policy("mixed_float16")
    model, own = half_model(), LossScaleOptimizer(tf.keras.optimizers.SGD(0.1), 4.0)
    model.compile(own, "mse")
    assert model.optimizer is own


def test_steps_whose_gradients_are_not_finite_change_nothing():
    variable, factor = tf.Variable([1.0, 2.0]), tf.placeholder(tf.float32, [])
    scale = tf.train.experimental.DynamicLossScale(initial_loss_scale=4.0, increment_period=2)
    optimizer = LossScaleOptimizer(tf.keras.optimizers.Adam(0.1), scale)
    step = optimizer.minimize(lambda: tf.reduce_sum(variable * variable) * factor, [variable])
    expected = [
        (1.0, [0.9, 1.9], 4.0, 1),
        (np.inf, [0.9, 1.9], 2.0, 1),
        (1.0, [0.80041, 1.80017], 2.0, 2),
        (1.0, [0.70159, 1.70062], 4.0, 3),
        (1.0, [0.60394, 1.60151], 4.0, 4),
        (np.nan, [0.60394, 1.60151], 2.0, 4),
        (1.0, [0.50796, 1.50296], 2.0, 5),
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value, now, scale_now, count in expected:
            session.run(step, {factor: value})
            np.testing.assert_allclose(session.run(variable), now, rtol=2e-5)
            assert session.run([scale(), optimizer.iterations]) == [scale_now, count]
        assert optimizer.get_slot_names() == ["m", "v"] and optimizer.get_slot(variable, "m") is not None


def test_gradients_by_hand():
    variable = tf.Variable([1.0, 2.0])
    optimizer = LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), 4.0)
    loss = tf.reduce_sum(variable * variable)
    scaled = [optimizer.get_scaled_loss(loss), optimizer.get_scaled_loss(lambda: loss)()]
    rows = tf.IndexedSlices(tf.constant([[8.0]], tf.float16), tf.constant([0]))
    found, nothing, sparse = optimizer.get_unscaled_gradients([tf.constant([8.0]), None, rows])
    gradients = optimizer.get_gradients(loss, [variable])
    step = optimizer.apply_gradients(zip(gradients, [variable], strict=True))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([*scaled, found[0]]) == [20, 20, 2] and nothing is None
        assert sparse.values.dtype == tf.float16 and session.run(sparse.values).tolist() == [[2]]
        assert session.run(gradients)[0].tolist() == [2, 4]
        session.run(step)
        assert session.run(variable).tolist() == [0, 0]


def test_its_hyperparameters_are_those_of_the_other_one():
    inner = tf.keras.optimizers.SGD(0.5)
    optimizer = LossScaleOptimizer(inner, "dynamic")
    assert isinstance(optimizer.loss_scale, tf.train.experimental.DynamicLossScale)
    optimizer.lr = 0.25
    assert optimizer.learning_rate is inner.learning_rate and tf.keras.backend.get_value(inner.lr) == 0.25
    assert optimizer.iterations is inner.iterations
    with pytest.raises(AttributeError, match="rho"):
        _ = optimizer.rho


def test_what_describes_it():
    """TensorFlow 1 has no description of it."""
    optimizer = LossScaleOptimizer(tf.keras.optimizers.Adam(0.5), 16.0)
    config = optimizer.get_config()
    assert config["loss_scale"] == {"class_name": "FixedLossScale", "config": {"loss_scale_value": 16.0}}
    made = LossScaleOptimizer.from_config(config)
    assert made.get_config() == config and made.loss_scale is not optimizer.loss_scale
    config["loss_scale"]["class_name"] = "Other"
    with pytest.raises(ValueError, match="'Other', which is not of tfray"):
        LossScaleOptimizer.from_config(config)


def test_a_file_of_a_model_has_it(tmp_path):
    pytest.importorskip("h5py")
    mixed_precision.set_policy("mixed_float16")
    model = half_model()
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    model.save(str(tmp_path / "model.h5"))
    found = tf.keras.models.load_model(str(tmp_path / "model.h5"))
    assert (
        isinstance(found.optimizer, LossScaleOptimizer) and found.optimizer.get_config() == model.optimizer.get_config()
    )
    np.testing.assert_allclose(found.predict(X), model.predict(X), atol=1e-2)


def test_it_is_saved_with_the_other_one(tmp_path):
    variable = tf.Variable([1.0, 2.0])
    optimizer = LossScaleOptimizer(tf.keras.optimizers.SGD(0.5, momentum=0.5), "dynamic")
    step = optimizer.minimize(lambda: tf.reduce_sum(variable), [variable])
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, variable=variable)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        path = checkpoint.save(str(tmp_path / "model"), session)
        session.run([step, optimizer.loss_scale.weights[0].assign(2.0)])
        checkpoint.restore(path).run_restore_ops(session)
        assert session.run([optimizer.iterations, optimizer.loss_scale()]) == [1, 2.0**15]
    keys = {name for name, _ in tf.train.list_variables(path)}
    assert keys >= {
        f"optimizer/base_optimizer/iter/{END}",
        f"optimizer/loss_scale/current_loss_scale/{END}",
        f"variable/.OPTIMIZER_SLOT/optimizer/base_optimizer/momentum/{END}",
    }


END = ".ATTRIBUTES/VARIABLE_VALUE"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.train.GradientDescentOptimizer(0.1), "must be an optimizer of tf.keras.optimizers"),
        (lambda: tf.keras.optimizers.SGD(0.1, clipnorm=1.0), "with a clipnorm"),
        (lambda: tf.keras.optimizers.SGD(0.1, clipvalue=1.0), "with a clipvalue"),
    ],
)
def test_optimizers_that_it_does_not_take(make, message):
    with pytest.raises(ValueError, match=message):
        LossScaleOptimizer(make(), 1.0)
