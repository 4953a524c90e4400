"""The battery over every operation type: values, shapes, dtypes, buffers, gradients and refusals.

The rows stand in `tests/support/op_samples`; its docstring says how to add one.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.support.gradient_check import check_gradients
from tests.support.interpreter import interpret
from tests.support.op_calls import (
    CASES,
    DIFFERENTIABLE,
    SAMPLES,
    as_list,
    assert_as_inferred,
    assert_equal,
    build,
    enumerate_fed,
    expected_values,
    operations_of,
    session_dtype,
)
from tests.support.op_samples import (
    MODES,
    OpError,
    OpSample,
    all_errors,
    unsampled,
)
from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.constant_value import constant_value
from tfray.framework.dtypes import DType, as_dtype
from tfray.framework.effects import has_kernel
from tfray.framework.graph import Graph, Operation, Tensor
from tfray.framework.op_def import OpDef, is_built_in, not_differentiable, registered_ops
from tfray.gradients import gradients
from tfray.ops import families as families
from tfray.ops.arrays.broadcast_ops import ones_like
from tfray.ops.arrays.source_ops import constant, placeholder
from tfray.runtime.device import Device, OpContext, cupy
from tfray.session import Session

CPU = Device("/job:localhost/task:0/device:CPU:0")


@pytest.fixture(autouse=True)
def graph():
    with Graph().as_default() as graph, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield graph


# -- coverage ------------------------------------------------------------------------------------------


def built_in_ops() -> dict[str, OpDef]:
    """tfray's own operation types, without those that other tests register."""
    return {name: definition for name, definition in registered_ops().items() if is_built_in(definition)}


def test_every_operation_has_a_sample():
    sampled = {sample.op for sample in SAMPLES}
    missing = sorted(set(built_in_ops()) - sampled - set(unsampled()))
    assert not missing, f"no sample row for {missing}: see tests/support/op_samples/__init__.py"


def test_exceptions_are_still_needed():
    sampled = {sample.op for sample in SAMPLES}
    stale = sorted(op for op in unsampled() if op in sampled or op not in registered_ops())
    assert not stale, f"{stale} are sampled, or gone: take them out of TESTED_ELSEWHERE"


def test_every_differentiable_operation_has_its_gradient_checked():
    checked = {sample.op for sample in SAMPLES if sample.differentiable_inputs()}
    no_gradient = (None, not_differentiable)
    differentiable = {name for name, definition in built_in_ops().items() if definition.gradient not in no_gradient}
    missing = sorted(differentiable - checked - set(unsampled()))
    assert not missing, f"no row checks the gradient of {missing}"


# -- values, dtypes, shapes ----------------------------------------------------------------------------


@contextlib.contextmanager
def named(dtype: DType | None) -> Iterator[None]:
    """What fails says in which dtype: a test for each would take several times as long as what it tests."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {dtype.name if dtype else 'the dtypes of the row'}")
        raise


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_value(sample: OpSample):
    for dtype in sample.swept_dtypes():
        with named(dtype):
            check_value(sample, sample.arrays(dtype))


def check_value(sample: OpSample, arrays: list[Any]) -> None:
    expected = expected_values(sample, arrays)
    for mode in sample.modes:
        if mode == "fed sizes" and not sample.sizes:
            continue
        with Graph().as_default():
            feeds, outputs = build(sample, arrays, mode)
            assert_has_type(sample.op, outputs)
            before = [array.copy() for array in arrays]
            for tensor, value, wanted in zip(outputs, interpret(outputs, feeds), expected, strict=True):
                assert_equal(value, wanted, sample.tolerance, f"{mode}: {tensor!r}")
                assert_as_inferred(tensor, value, mode == "known" and not sample.data_dependent)
            for array, copy in zip(arrays, before, strict=True):
                assert array.tobytes() == copy.tobytes(), "an input was changed"


def assert_has_type(op_type: str, outputs: list[Tensor]) -> None:
    assert operations_of(op_type, outputs), f"the row builds no operation of type {op_type}"


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_constant_inputs_give_a_constant(sample: OpSample):
    arrays = sample.arrays(next(iter(sample.swept_dtypes())))
    outputs = as_list(sample.build(*map(constant, arrays), **sample.kwargs))
    for tensor, expected in zip(outputs, expected_values(sample, arrays), strict=True):
        value = constant_value(tensor)
        if value is not None:
            assert_equal(value, expected, sample.tolerance, f"{tensor!r}")


# -- kernels and buffers -------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_kernel_fills_buffers(sample: OpSample):
    for dtype in sample.swept_dtypes():
        with named(dtype), Graph().as_default():
            check_kernels(sample, sample.arrays(dtype))


def check_kernels(sample: OpSample, arrays: list[Any]) -> None:
    feeds, outputs = build(sample, arrays, "known")
    for op in operations_of(sample.op, outputs):
        if op.op_def.stateful or op.op_def.regions or any(tensor.dtype is dtypes.variant for tensor in op.inputs):
            continue
        values = [np.asarray(value) for value in interpret(list(op.inputs), feeds)]
        expected = run_kernel(op, values)
        check_scalars(op, values, expected)
        if op.op_def.kernels["CPU"].accepts_out:
            check_out(op, values, expected)
        else:
            assert not op.op_def.kernels["CPU"].may_overwrite


def run_kernel(op: Operation, values: list[Any], **options: Any) -> list[Any]:
    with np.errstate(all="ignore"):
        result = op.op_def.kernels["CPU"].function(OpContext(op, CPU), *values, **options)
    return list(result) if op.op_def.returns_sequence else [result]


def check_scalars(op: Operation, values: list[Any], expected: list[Any]) -> None:
    """Values of rank 0 may arrive as NumPy scalars."""
    if any(value.ndim == 0 and value.dtype != object for value in values):
        scalars = [value[()] if value.ndim == 0 and value.dtype != object else value for value in values]
        for value, wanted, tensor in zip(run_kernel(op, scalars), expected, op.outputs, strict=True):
            assert np.asarray(value).dtype == tensor.dtype.numpy, f"from scalars: {np.asarray(value).dtype}"
            assert_equal(value, wanted, 1, "from scalars")


def check_out(op: Operation, values: list[Any], expected: list[Any]) -> None:
    wanted = np.asarray(expected[0])
    out = garbage(wanted)
    assert run_kernel(op, values, out=out)[0] is out, "the kernel did not return its buffer"
    assert_equal(out, wanted, 1, "in a buffer")
    for index in op.op_def.kernels["CPU"].may_overwrite:
        if index < len(values) and values[index].shape == wanted.shape and values[index].dtype == wanted.dtype:
            shared = np.ascontiguousarray(values[index]).reshape(wanted.shape).copy()
            inputs = [shared if i == index else value for i, value in enumerate(values)]
            result = run_kernel(op, inputs, out=shared)[0]
            assert result is shared, "the kernel did not return its buffer"
            assert_equal(shared, wanted, 1, f"in the memory of input {index}")


def garbage(like: Any) -> Any:
    """A buffer with contents that would show."""
    out = np.empty(like.shape, like.dtype)
    out[...] = True if like.dtype == bool else (77 if like.dtype != object else b"garbage")
    return out


# -- gradients -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_gradient(sample: OpSample):
    for dtype in gradient_dtypes(sample):
        check_gradients(
            lambda *tensors: sample.build(*tensors, **sample.kwargs),
            sample.arrays(dtype),
            sample.differentiable_inputs(),
            twice=sample.twice,
            constants=sample.sizes,
        )


def gradient_dtypes(sample: OpSample) -> list[DType | None]:
    swept = sample.swept_dtypes()
    return [dtype for dtype in swept if dtype in (None, dtypes.float64, dtypes.complex128)]


@pytest.mark.rows(every=3)
@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_gradient_in_other_dtypes_and_with_unknown_shapes(sample: OpSample):
    swept = [dtype for dtype in sample.swept_dtypes() if dtype is not None and dtype.is_floating]
    if dtypes.float64 not in swept:
        pytest.skip("runs in no 64-bit float")
    exact = gradient_values(sample, dtypes.float64, "known")
    for mode in sample.modes:
        for value, expected in zip(gradient_values(sample, dtypes.float64, mode), exact, strict=True):
            assert_equal(value, expected, 100 * sample.tolerance, f"gradient, {mode}")
    for dtype in swept:
        for value, expected in zip(gradient_values(sample, dtype, "known"), exact, strict=True):
            assert np.asarray(value).dtype == dtype.numpy
            assert_equal(value, expected, 30 * sample.tolerance, f"gradient in {dtype.name}")


def gradient_values(sample: OpSample, dtype: DType, mode: str) -> list[Any]:
    """Gradients of the sum of all outputs."""
    with Graph().as_default():
        arrays = sample.arrays(dtype)
        feeds, outputs = build(sample, arrays, mode)
        by_index = [t for i, t in enumerate_fed(sample, feeds, mode) if i in sample.differentiable_inputs()]
        ys = [y for y in outputs if y.dtype.is_differentiable]
        found = gradients(ys, by_index, [ones_like(y) for y in ys])
        dense = [d for d in found if isinstance(d, Tensor)]
        return interpret(dense, feeds)


# -- the compiled executor -----------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_session_agrees_with_interpreter(sample: OpSample):
    """Values and gradients, in two steps: the second one reuses the buffers of the first."""
    arrays = sample.arrays(session_dtype(sample))
    feeds, fetches = build(sample, arrays, "known")
    xs = [tensor for i, tensor in enumerate_fed(sample, feeds, "known") if i in sample.differentiable_inputs()]
    ys = [y for y in fetches if y.dtype.is_differentiable]
    if xs and ys:
        fetches = fetches + [d_x for d_x in gradients(ys, xs, [ones_like(y) for y in ys]) if isinstance(d_x, Tensor)]
    expected = interpret(fetches, feeds)
    with Session() as session:
        first = session.run(fetches, feeds)
        kept = [np.array(value, copy=True) for value in first]
        second = session.run(fetches, feeds)
    for tensor, wanted, values in zip(fetches, expected, zip(first, kept, second, strict=True), strict=True):
        for value, what in zip(values, ("as the second step left it", "first step", "second step"), strict=True):
            assert_equal(value, wanted, 4 * sample.tolerance, f"{what}: {tensor!r}")


# -- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", all_errors(), ids=str)
def test_refusal(error: OpError):
    arrays = [np.asarray(value) for value in error.inputs]
    if not error.at_run:
        with pytest.raises(InvalidArgumentError, match=error.match) as caught:
            error.build(*map(constant, arrays))
        assert error.op in str(caught.value), f"the message does not name {error.op}: {caught.value}"
        return
    tensors = [placeholder(as_dtype(array.dtype)) for array in arrays]
    outputs = as_list(error.build(*tensors))
    with pytest.raises(InvalidArgumentError, match=error.match):
        interpret(outputs, dict(zip(tensors, arrays, strict=True)))


# -- GPU -----------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize(("sample", "dtype"), CASES if cupy() is not None else [])
def test_gpu_agrees_with_cpu(sample: OpSample, dtype: DType | None):
    if dtype is dtypes.bfloat16:
        pytest.skip("cupy has no bfloat16")
    arrays = sample.arrays(dtype)
    feeds, outputs = build(sample, arrays, "known")
    if not all(has_kernel(op, "GPU") for op in outputs[0].graph.get_operations()):
        pytest.skip("has no GPU kernel")
    values = interpret(outputs, feeds, Device.open("/job:localhost/task:0/device:GPU:0"))
    for tensor, value, wanted in zip(outputs, values, interpret(outputs, feeds), strict=True):
        assert_equal(value, wanted, 4 * sample.tolerance, f"{tensor!r}")
        assert_as_inferred(tensor, value, False)


def test_modes_are_known():
    assert all(set(sample.modes) <= set(MODES) for sample in SAMPLES)
