"""Jacobians and Hessians: a backward pass for each element of what is differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_graph
from tfray.gradients import Gradient, UnconnectedGradients, gradients
from tfray.ops.arrays import array_ops
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.control import control_flow_ops, tensor_array_ops
from tfray.ops.math.comparison_ops import equal

_UNROLLED: Final = 64
"""Backward passes of a Jacobian that are added to the graph one by one. More are one pass in a loop."""

RowOf = Callable[[Any], Sequence[Gradient | None]]
"""The gradients of an element, by its place, with respect to each source."""


def jacobian(
    output: Any,
    inputs: Any,
    use_pfor: bool = True,
    parallel_iterations: int | None = None,
    stop_gradients: Sequence[Tensor] = (),
) -> Any:
    """The derivatives of each element of `output` with respect to each element of `inputs`.

    Args:
        output: A tensor.
        inputs: A tensor or variable, or a nested structure of them.
        use_pfor: Accepted for TensorFlow 1's sake: there is a backward pass for each element of `output`, in a loop
            when they are many or their number is not known.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        stop_gradients: As for `tf.gradients`.

    Returns:
        For each of `inputs` a tensor of shape ``output.shape + input.shape``, or None where `output` does not depend on
        it.
    """
    sources = nest.flatten(inputs)
    target = convert_to_tensor(output)
    elements = array_ops.reshape(target, [-1])
    rows = _stacked(
        elements,
        lambda place: gradients(elements[place], sources, stop_gradients=stop_gradients),
        sources,
        unrolled=_UNROLLED,
    )
    sizes = array_ops.shape(target)
    shaped = [
        None if row is None else _reshaped(row, [sizes, array_ops.shape(x)], target.shape.concatenate(x.shape))
        for row, x in zip(rows, sources, strict=True)
    ]
    return nest.pack_sequence_as(inputs, shaped)


def batch_jacobian(
    output: Any,
    inp: Any,
    use_pfor: bool = True,
    parallel_iterations: int | None = None,
    stop_gradients: Sequence[Tensor] = (),
) -> Tensor | None:
    """The derivatives of each ``output[i, ...]`` with respect to ``inp[i, ...]``.

    Args:
        output: Shape ``[b, ...]``. ``output[i]`` depends on ``inp[i]`` alone, and on no other example.
        inp: A tensor, of shape ``[b, ...]``.
        use_pfor: As for `jacobian`.
        parallel_iterations: As for `jacobian`.
        stop_gradients: As for `tf.gradients`.

    Returns:
        A tensor of shape ``output.shape + inp.shape[1:]``, or None where `output` does not depend on `inp`.

    Raises:
        ValueError: The first sizes differ, or one of the two is a scalar.
    """
    target, source = convert_to_tensor(output), convert_to_tensor(inp)
    ranks = (target.shape.rank, source.shape.rank)
    if 0 in ranks or not target.shape[:1].is_compatible_with(source.shape[:1]):
        raise ValueError(
            f"Need first dimension of output shape ({target.shape}) and inp shape ({source.shape}) to match."
        )
    with get_default_graph().control_dependencies(_same_count(target, source)):
        sizes = array_ops.shape(target)
    examples = array_ops.transpose(array_ops.reshape(target, [sizes[0], -1]))  # a row for each element of an example
    if target.shape[1:].is_fully_defined():
        examples.set_shape([target.shape[1:].num_elements(), None])
    (rows,) = _stacked(
        examples,
        lambda place: gradients(examples[place], [source], stop_gradients=stop_gradients),
        [source],
        unrolled=_UNROLLED,
    )
    if rows is None:
        return None
    count = array_ops.shape(examples)[0]
    by_example = array_ops.transpose(array_ops.reshape(rows, [count, sizes[0], -1]), [1, 0, 2])
    shape = target.shape.concatenate(source.shape[1:])
    return _reshaped(by_example, [sizes, array_ops.shape(source)[1:]], shape)


def _same_count(target: Tensor, source: Tensor) -> list[Any]:
    """What checks in a step that there are as many examples of both, where it is not known before."""
    if target.shape[:1].is_fully_defined() and source.shape[:1].is_fully_defined():
        return []
    here, there = array_ops.shape(target)[0], array_ops.shape(source)[0]
    return [Assert(equal(here, there), ["Need first dimension of output and inp to match:", here, there])]


def hessians(
    ys: Any,
    xs: Any,
    name: str | None = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """The second derivatives of each of `ys` with respect to the one of `xs` at the same place.

    Every element of an x adds a backward pass to the graph. A product of the Hessian with a vector v needs only two
    backward passes: ``tf.gradients(tf.reduce_sum(tf.gradients(y, x)[0] * v), x)``.

    Args:
        ys: A scalar tensor, or a list of them.
        xs: As many tensors or variables. Those of unknown shape take a loop of their elements.
        name: Name scope of the new operations.
        colocate_gradients_with_ops: As for `gradients`.
        gate_gradients: As for `gradients`.
        aggregation_method: As for `gradients`.

    Returns:
        For each pair a tensor of shape ``x.shape + x.shape``.

    Raises:
        InvalidArgumentError: The lists differ in length.
    """
    targets, sources = ([values] if not isinstance(values, (list, tuple)) else list(values) for values in (ys, xs))
    if len(targets) != len(sources):
        raise InvalidArgumentError(f"hessians: there are {len(targets)} ys and {len(sources)} xs")
    options: dict[str, Any] = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
        "unconnected_gradients": UnconnectedGradients.ZERO,
    }
    with get_default_graph().name_scope(name or "hessians"):
        return [_hessian(y, x, options) for y, x in zip(targets, sources, strict=True)]


def _hessian(y: Any, x: Any, options: dict[str, Any]) -> Tensor:
    slope = array_ops.reshape(gradients(y, x, **options)[0], [-1])
    (rows,) = _stacked(slope, lambda place: gradients(slope[place], x, **options), [x], unrolled=None)
    assert rows is not None  # zeros where nothing is connected
    return _reshaped(rows, [array_ops.shape(x)] * 2, x.shape.concatenate(x.shape))


def _reshaped(tensor: Tensor, sizes: Sequence[Tensor], shape: Any) -> Tensor:
    result = array_ops.reshape(tensor, shape if shape.is_fully_defined() else array_ops.concat(list(sizes), 0))
    result.set_shape(shape)
    return result


def _stacked(targets: Tensor, row_of: RowOf, sources: Sequence[Any], unrolled: int | None) -> list[Tensor | None]:
    """For each source the gradients of ``targets[0]``, ``targets[1]``, ..., stacked; None where none is connected.

    Args:
        targets: What is differentiated, along its first axis.
        row_of: What differentiates one of them.
        sources: With respect to what.
        unrolled: How many rows at most are made one by one; None for any number.
    """
    count = targets.shape.sizes[0] if targets.shape.rank else None
    if count is None or (unrolled is not None and count > unrolled):
        return _stacked_by_loop(targets, row_of, sources)
    rows = [row_of(place) for place in range(count)]
    if not rows:
        return [array_ops.zeros_like(x) for x in sources]  # reshaped to no elements
    return [
        None if any(d is None for d in column) else array_ops.stack([convert_to_tensor(d) for d in column])
        for column in zip(*rows, strict=True)
    ]


def _stacked_by_loop(targets: Tensor, row_of: RowOf, sources: Sequence[Any]) -> list[Tensor | None]:
    count = array_ops.shape(targets)[0]
    unconnected: set[int] = set()

    def row(place: Tensor, columns: Any) -> tuple[Tensor, Any]:
        found = row_of(place)
        unconnected.update(index for index, d in enumerate(found) if d is None)
        dense = [array_ops.zeros_like(x) if d is None else d for x, d in zip(sources, found, strict=True)]
        return place + 1, [column.write(place, convert_to_tensor(d)) for column, d in zip(columns, dense, strict=True)]

    columns: Any = [tensor_array_ops.TensorArray(convert_to_tensor(x).dtype, count) for x in sources]
    _, columns = control_flow_ops.while_loop(lambda place, _: place < count, row, [0, columns])
    return [None if index in unconnected else column.stack() for index, column in enumerate(columns)]
