"""Branches, loops and TensorArrays. What gives a variant is tested through what reads it."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpSample, grid
from tfray.framework.convert import add_op
from tfray.framework.tensor_shape import TensorShape
from tfray.ops.control import control_flow_ops, gradient_array_ops, tensor_array_ops
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math import stacked_product_ops


def _unstacked(x):
    return TensorArray(x.dtype, 0, dynamic_size=True).unstack(x)


def _written(x, y):
    return TensorArray(x.dtype, 2).write(1, x).write(0, y)


def _beside(x, kind, *where):
    """All elements but the last one as a gradient, which is read beside an array that has all."""
    definition = getattr(gradient_array_ops, f"TENSOR_ARRAY_{kind.upper()}_LIKE")
    gradient, like = _unstacked(x[:2]).flow, _unstacked(x).flow
    return add_op(definition, gradient, *where, like, [], dtype=x.dtype, element_shape=TensorShape(None))


def _as_loop(x):
    return control_flow_ops.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * a), [0, x])


def _in_loop(x):
    (loop,) = {result.op.inputs[0].op for result in _as_loop(x)}  # the results have names of their own
    return loop.outputs


SAMPLES = [
    OpSample(
        "TensorArrayRead", lambda x: _unstacked(x).read(1), [grid(3, 2)], lambda x: x[1], modes=("known",)
    ),
    OpSample("TensorArrayRead", lambda x: _unstacked(x).read(2), [grid(3)], lambda x: x[2], modes=("known",)),
    OpSample(
        "TensorArrayGather",
        lambda x, y: _written(x, y).stack(),
        [grid(2, 3), grid(2, 3, seed=1)],
        lambda x, y: np.stack([y, x]),
        data_dependent=True,
    ),
    OpSample(
        "TensorArrayGather",
        lambda x, i: _unstacked(x).gather(i),
        [grid(3, 2), np.int32([2, 0, 2])],
        lambda x, i: x[i],
        data_dependent=True,
    ),
    OpSample(
        "TensorArrayConcat",
        lambda x: TensorArray(x.dtype, 3, infer_shape=False).split(x, [2, 0, 1]).concat().op.outputs,
        [grid(3, 2)],
        lambda x: [x, np.int32([2, 0, 1])],
        data_dependent=True,
    ),
    OpSample(
        "TensorArraySize",
        lambda x: _unstacked(x).size(),
        [grid(3, 2)],
        lambda x: np.int32(3),
        differentiable=(),
    ),
    OpSample(
        "TensorArrayReadOrZeros",
        lambda x: [tensor_array_ops.read_or_zeros(_unstacked(x).flow, i, x[0]) for i in (1, 7)],
        [grid(3, 2)],
        lambda x: [x[1], np.zeros_like(x[0])],
        modes=("known",),
    ),
    OpSample(
        "TensorArrayReadLike",
        lambda x: [_beside(x, "Read", i) for i in (1, 2)],
        [grid(3, 2)],
        lambda x: [x[1], np.zeros((2,))],
        data_dependent=True,
    ),
    OpSample(
        "TensorArrayGatherLike",
        lambda x: _beside(x, "Gather", [2, 0, 0]),
        [grid(3, 2)],
        lambda x: x[[2, 0, 0]] * [[0], [1], [1]],
        data_dependent=True,
    ),
    OpSample(
        "TensorArrayConcatLike",
        lambda x: _beside(x[:, None], "Concat"),
        [grid(3, 2)],
        lambda x: [x * [[1], [1], [0]], np.int32([1, 1, 1])],
        data_dependent=True,
    ),
    *[
        OpSample(
            "ProductOfStacks",
            lambda a, b, like: stacked_product_ops.product_of_stacks(_unstacked(a).flow, _unstacked(b).flow, like),
            [grid(turns, 4, 2), grid(turns, 4, 3, seed=1), grid(2, 3, seed=2)],
            lambda a, b, like: np.einsum("tkn,tkm->nm", a, b),
            differentiable=(0, 1),
            tolerance=8,
        )
        for turns in (3, 0)
    ],
    OpSample(
        "Cond",
        lambda x, c: control_flow_ops.cond(c > 0, lambda: x * x, lambda: -x),
        [grid(2, 3), np.float64(0.5)],
        lambda x, c: x * x if c > 0 else -x,
        differentiable=(0,),
    ),
    OpSample("While", _in_loop, [grid(2, 3, low=-1, high=1)], lambda x: [np.int32(2), np.int32(2), x**4], tolerance=4),
]  # fmt: skip

TESTED_ELSEWHERE = {
    "RegionInput": "the input of a branch or a loop: test_control_flow.py",
    "StackTimesMatrix": "the gradient of ProductOfStacks, which checks it",
    **dict.fromkeys(["TensorArrayPop", "TensorArrayReplace", "TensorArrayResize"], "lists: test_tensor_list_ops.py"),
    **dict.fromkeys(["TensorArrayBounds", "TensorArrayElementShape"], "lists: test_tensor_lists.py"),
    "NoValue": "has no value: test_control_flow_gradients.py",
    **dict.fromkeys(["StackV2", "StackPushV2", "StackPopV2"], "works in place: test_stack_ops.py"),
    **dict.fromkeys(
        [
            "TensorArray",
            "TensorArrayIdentity",
            "TensorArrayWrite",
            "TensorArrayScatter",
            "TensorArraySplit",
            "TensorArrayAccumulate",
            "TensorArrayAccumulateRows",
            "TensorArraySum",
            "TensorArrayReadFlowOrEmpty",
            "TensorArrayGatherOrZeros",
            "TensorArrayConcatOrZeros",
        ],
        "gives a variant, or is the gradient of what does: test_tensor_array.py",
    ),
}
