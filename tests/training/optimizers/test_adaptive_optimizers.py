"""RMSProp, Adadelta and the optimizers with penalties, against NumPy and against recorded results of TensorFlow."""

from __future__ import annotations

import types
from contextlib import nullcontext

import numpy as np
import pytest

from tests.support.interpreter import interpret
from tfray.errors import InvalidArgumentError
from tfray.framework.indexed_slices import IndexedSlices
from tfray.library.variables.variables import Variable, global_variables_initializer
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.ops.math import math_ops
from tfray.ops.state import adaptive_training_ops, proximal_training_ops
from tfray.ops.state.updates import add_either
from tfray.runtime.device import Device
from tfray.session import Session
from tfray.training.optimizers.adadelta import AdadeltaOptimizer
from tfray.training.optimizers.adagrad import AdagradOptimizer
from tfray.training.optimizers.adagrad_da import AdagradDAOptimizer
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.ftrl import FtrlOptimizer
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.proximal_adagrad import ProximalAdagradOptimizer
from tfray.training.optimizers.proximal_gradient_descent import ProximalGradientDescentOptimizer
from tfray.training.optimizers.rms_prop import RMSPropOptimizer
from tfray.training.threads.global_step import create_global_step

# -- recorded results ------------------------------------------------------------------------------------

START = np.array([[1.0, -2.0], [0.5, 0.25], [-0.75, 1.5], [3.0, -0.125]], np.float32)
ROWS = [[0, 2, 2], [3, 0, 3], [1, 1, 1], [2, 0, 3]]
RECORDED_OPTIMIZERS = {
    "descent": lambda step: GradientDescentOptimizer(0.5),
    "momentum": lambda step: MomentumOptimizer(0.25, 0.75),
    "nesterov": lambda step: MomentumOptimizer(0.25, 0.75, use_nesterov=True),
    "adagrad": lambda step: AdagradOptimizer(0.5),
    "adam": lambda step: AdamOptimizer(0.125, 0.75, 0.875, 0.0009765625),
    "rms_prop": lambda step: RMSPropOptimizer(0.125, 0.75, 0.5, 0.0009765625),
    "rms_prop_plain": lambda step: RMSPropOptimizer(0.125),
    "rms_prop_centered": lambda step: RMSPropOptimizer(0.125, 0.75, 0.5, 0.0009765625, centered=True),
    "adadelta": lambda step: AdadeltaOptimizer(0.5, 0.75, 0.015625),
    "adagrad_da": lambda step: AdagradDAOptimizer(0.5, step),
    "adagrad_da_penalties": lambda step: AdagradDAOptimizer(0.5, step, 0.25, 0.125, 0.25),
    "ftrl": lambda step: FtrlOptimizer(0.5),
    "ftrl_penalties": lambda step: FtrlOptimizer(
        0.5, -0.75, 0.25, 0.125, 0.25, l2_shrinkage_regularization_strength=0.0625
    ),
    "proximal_descent": lambda step: ProximalGradientDescentOptimizer(0.5, 0.125, 0.25),
    "proximal_adagrad": lambda step: ProximalAdagradOptimizer(0.5, 0.25, 0.125, 0.25),
    "proximal_adagrad_plain": lambda step: ProximalAdagradOptimizer(0.5),
}
# The variable after four steps with dense, and with sparse gradients, as TensorFlow 2.21 has it.
RECORDED = {
    "descent": (
        [0.05405582, -2.567543, 0.8326547, 1.177011, -0.08092216, 1.295998, 2.110476, -0.8822211],
        [0.8531651, -2.423414, 0.55481, 0.226214, 0.2798915, 2.179987, 2.211066, -0.3242617],
    ),
    "momentum": (
        [0.08042699, -2.973451, 0.3676571, 1.080441, 0.2797212, 1.782281, 2.275312, -1.190381],
        [0.7840812, -2.266436, 0.527405, 0.238107, -0.03446853, 1.97243, 2.45104, -0.3266352],
    ),
    "nesterov": (
        [-0.1626518, -3.01386, 0.5670702, 1.336336, 0.3568298, 1.609709, 2.011723, -1.302646],
        [0.7646434, -2.411534, 0.5479589, 0.2291873, 0.3015943, 2.194316, 2.193813, -0.3758573],
    ),
    "adagrad": (
        [0.1215334, -2.624932, 0.5692074, 0.9859729, -0.02716707, 1.530202, 2.362495, -0.9435018],
        [0.7699882, -2.434264, 0.6637644, 0.1756191, 0.06137097, 2.278982, 2.208443, -0.444635],
    ),
    "adam": (
        [0.6953893, -2.3635, 0.3559438, 0.4138457, -0.3648089, 1.682045, 2.866284, -0.5290747],
        [0.8948551, -2.130603, 0.6506194, 0.1041902, -0.4002984, 1.849244, 2.735531, -0.3190343],
    ),
    "rms_prop": (
        [0.5675978, -2.329219, 0.5561566, 0.6596189, -0.3820675, 1.504578, 2.622396, -0.5250788],
        [0.9268755, -2.122651, 0.5157805, 0.2431406, -0.4306886, 1.735011, 2.73573, -0.2142862],
    ),
    "rms_prop_plain": (
        [0.7465951, -2.138365, 0.5980526, 0.5002937, -0.583576, 1.435392, 2.75815, -0.3164454],
        [0.9616259, -2.11062, 0.5144341, 0.2437326, -0.4941582, 1.676829, 2.797482, -0.1756721],
    ),
    "rms_prop_centered": (
        [0.536142, -2.356461, 0.5561764, 0.6889195, -0.3520468, 1.509256, 2.595908, -0.5572872],
        [0.9200316, -2.127152, 0.5157884, 0.24314, -0.4094021, 1.743466, 2.723718, -0.215487],
    ),
    "adadelta": (
        [0.7199011, -2.156713, 0.6101583, 0.5308605, -0.5530102, 1.421689, 2.693351, -0.3625606],
        [0.9583639, -2.145606, 0.5501966, 0.2266333, -0.5030005, 1.738643, 2.758226, -0.1941308],
    ),
    "adagrad_da": (
        [-0.7353455, -0.3802629, 0.213003, 0.7130277, 0.461489, -0.1288148, -0.6708134, -0.5386423],
        [-0.09989575, -0.320888, 0.1637644, -0.07438092, 0.6905127, 0.671266, -0.6796893, -0.3085228],
    ),
    "adagrad_da_penalties": (
        [-0.3775263, -0.1555109, 0.03919059, 0.3646576, 0.2094695, -0.0, -0.3399119, -0.259028],
        [-0.0, -0.09247913, 0.0, -0.0, 0.3821212, 0.2713698, -0.3126723, -0.0],
    ),
    "ftrl": (
        [-0.8784665, -1.921366, 0.40497, 0.7576741, 0.2619904, 1.060426, 0.1143609, -0.8892885],
        [0.4684768, -1.424017, 0.1913438, -0.07159918, 0.2739754, 1.666049, 1.133525, -0.3818171],
    ),
    "ftrl_penalties": (
        [-0.6054434, -1.187163, 0.2537079, 0.5196369, 0.1609369, 0.6597421, -0.3931154, -0.5218786],
        [0.2986077, -0.6648501, 0.0, 0.0, 0.1375097, 1.027933, 0.6614863, -0.1686067],
    ),
    "proximal_descent": (
        [-0.07112543, -1.36211, 0.6145732, 0.6929533, -0.07555781, 0.4467722, 0.9675189, -0.3637152],
        [0.467368, -1.614078, 0.437609, 0.1455236, 0.2638645, 1.649799, 1.604847, -0.1440833],
    ),
    "proximal_adagrad": (
        [-0.09800268, -1.591341, 0.4425988, 0.5684266, -0.05049845, 0.7672875, 1.024191, -0.434453],
        [0.5037911, -1.543483, 0.3897902, 0.0626194, 0.05543219, 1.656916, 1.688209, -0.145661],
    ),
    "proximal_adagrad_plain": (
        [0.1215334, -2.624932, 0.5692074, 0.9859729, -0.02716707, 1.530202, 2.362495, -0.9435018],
        [0.7699882, -2.434264, 0.6637644, 0.1756191, 0.06137097, 2.278982, 2.208443, -0.444635],
    ),
}


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("sparse", [False, True])
def test_recorded_steps(name, sparse):
    step, var = create_global_step(), Variable(START)
    if sparse:
        feed = [(np.cos(np.arange(6) + t).reshape(3, 2), rows) for t, rows in enumerate(ROWS)]
        value, indices = placeholder("float32", [3, 2]), placeholder("int64", [3])
        gradient = IndexedSlices(value, indices)
    else:
        feed = [(np.sin(np.arange(8) + t).reshape(4, 2), [0]) for t in range(4)]
        value, indices = placeholder("float32", [4, 2]), placeholder("int64", [1])
        gradient = value
    train_op = RECORDED_OPTIMIZERS[name](step).apply_gradients([(gradient, var)], global_step=step)
    with Session() as session:
        session.run(global_variables_initializer())
        for values, rows in feed:
            session.run(train_op, {value: values, indices: rows})
        np.testing.assert_allclose(session.run(var).ravel(), RECORDED[name][sparse], rtol=2e-5, atol=2e-6)


# -- what is particular ----------------------------------------------------------------------------------


def slot_names(optimizer, *args, **kwargs):
    optimizer.minimize(Variable([1.0], name="w") * 2.0, *args, **kwargs)
    return optimizer.get_slot_names(), [v.op.name for v in optimizer.variables()]


def test_names_of_slots():
    names, variables = slot_names(RMSPropOptimizer(0.1, centered=True))
    assert names == ["mg", "momentum", "rms"]
    assert variables == ["w/RMSProp", "w/RMSProp_1", "w/RMSProp_2"]
    assert slot_names(FtrlOptimizer(0.1, accum_name="A", linear_name="L")) == (
        ["accum", "linear"],
        ["w_1/A", "w_1/L"],
    )
    assert slot_names(AdadeltaOptimizer())[1] == ["w_2/Adadelta", "w_2/Adadelta_1"]
    step = create_global_step()
    assert slot_names(AdagradDAOptimizer(0.1, step), global_step=step)[0] == [
        "gradient_accumulator",
        "gradient_squared_accumulator",
    ]


def test_penalties_give_weights_that_are_zero():
    step = create_global_step()
    optimizers = [
        FtrlOptimizer(0.1, l1_regularization_strength=1.0),
        AdagradDAOptimizer(0.1, step, l1_regularization_strength=1.0),
        ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=1.0),
        ProximalAdagradOptimizer(0.1, l1_regularization_strength=1.0),
    ]
    variables = [Variable([0.0, 0.01]) for _ in optimizers]
    gradient = constant([2.0, 0.5])
    train = [optimizer.apply_gradients([(gradient, var)]) for optimizer, var in zip(optimizers, variables, strict=True)]
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train)
        for value in session.run(variables):
            assert value[0] < 0 and value[1] == 0


def test_ftrl_from_nothing_stays_finite():
    var = Variable([1.0, 1.0])
    train_op = FtrlOptimizer(0.1, initial_accumulator_value=0.0).apply_gradients([(constant([0.0, 1.0]), var)])
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op)
        first, second = session.run(var)
    assert first == 0.0 and np.isfinite(second)


def test_hyperparameters_may_be_tensors_and_functions():
    rate, var = placeholder("float32", []), Variable([1.0])
    train_op = RMSPropOptimizer(rate, decay=lambda: 0.5, momentum=constant(0.0)).minimize(math_ops.reduce_sum(var))
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(train_op, {rate: 0.25})
        np.testing.assert_allclose(session.run(var), [0.75])


@pytest.mark.parametrize(
    "make",
    [
        lambda: FtrlOptimizer(0.1, learning_rate_power=0.5),
        lambda: FtrlOptimizer(0.1, initial_accumulator_value=-1.0),
        lambda: FtrlOptimizer(0.1, l1_regularization_strength=-1.0),
        lambda: ProximalAdagradOptimizer(0.1, initial_accumulator_value=0.0),
        lambda: AdagradDAOptimizer(0.1, None, initial_gradient_squared_accumulator_value=0.0),
    ],
)
def test_numbers_out_of_range(make):
    with pytest.raises(InvalidArgumentError, match="expected"):
        make()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_form_for_gpus_gives_the_same(dtype):
    # NumPy under another name: kernels then take the way that they take for any other array module.
    one_gpu = types.SimpleNamespace(Device=lambda _: nullcontext())
    other = Device("/job:localhost/task:0/device:GPU:0", xp=types.SimpleNamespace(**vars(np), cuda=one_gpu))
    random = np.random.default_rng(8)
    start, dense, rows = (random.uniform(0.5, 1, size=(7, 3)).astype(dtype) for _ in range(3))
    indices = np.array([6, 0, 0, 3, 6, 6, 1], np.int32)
    var, a, b, c = (Variable(start) for _ in range(4))
    half, eighth, none = constant(0.5), constant(0.125), constant(0.0)
    calls = [
        (adaptive_training_ops.RMS_PROP, (a, b), (half, half, none, eighth)),
        (adaptive_training_ops.CENTERED_RMS_PROP, (c, a, b), (eighth, eighth, half, constant(2.0))),
        (adaptive_training_ops.ADADELTA, (a, b), (half, half, eighth)),
        (proximal_training_ops.PROXIMAL_GRADIENT_DESCENT, (), (half, eighth, eighth)),
        (proximal_training_ops.PROXIMAL_ADAGRAD, (a,), (half, none, none)),
        (proximal_training_ops.ADAGRAD_DA, (a, b), (half, eighth, eighth, constant(2.0))),
        (proximal_training_ops.FTRL, (a, b), (half, eighth, eighth, eighth, constant(-0.5))),
    ]
    for definitions, slots, scalars in calls:
        for gradient in ((dense, None), (rows, indices)):
            update = add_either(definitions, var, slots, scalars, *gradient)
            results = []
            for device in (Device("/job:localhost/task:0/device:CPU:0"), other):
                interpret([v.initializer for v in (var, a, b, c)], device=device)
                interpret(update, device=device)
                results.append(np.stack(interpret([v.value() for v in (var, a, b, c)], device=device)))
            np.testing.assert_allclose(*results, rtol=2e-5 if dtype == "float32" else 8e-3, err_msg=update.name)
