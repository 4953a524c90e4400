"""Recurrent networks over sequences: a cell, step after step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes, nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import TensorShape
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.rnn.rnn_cell_base import RNNCell, batch_size_of, check_is_cell, with_batch, zeros_of
from tfray.library.variables.variable_scope import ScopeLike, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.checks.check_ops import assert_equal
from tfray.ops.control.control_flow_ops import counted_loop, while_loop
from tfray.ops.control.tensor_array_ops import TensorArray
from tfray.ops.math import math_ops


def dynamic_rnn(
    cell: RNNCell,
    inputs: Structure,
    sequence_length: TensorLike | None = None,
    initial_state: Structure = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: ScopeLike | None = None,
) -> tuple[Any, Any]:
    """Run a cell over sequences, in a loop. The length need not be known, and may differ from run to run.

    Args:
        cell: The cell.
        inputs: Shape ``[batch, time, size]``, or a nested structure of such tensors.
        sequence_length: Integers ``[batch]``: the length of each sequence. Past its end the outputs are zeros, and the
            state stays what it was there. All are as long as `inputs` when None.
        initial_state: The first state, ``[batch, state_size]`` or in the structure of the cell's `state_size`; zeros
            when None.
        dtype: Dtype of that, needed when `initial_state` is None.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        swap_memory: As for `tf.while_loop`.
        time_major: `inputs` and outputs have shape ``[time, batch, size]``, which saves transposing them.
        scope: Variable scope, or its name; ``rnn`` when None.

    Returns:
        The outputs, ``[batch, time, output_size]`` (in the structure of the cell's `output_size`), and the last state,
        in the shape of the first one.

    Raises:
        ValueError: Neither `initial_state` nor `dtype`, or inputs without a known size.
        InvalidArgumentError: At run time, `sequence_length` does not fit the batch.

    Examples:
        >>> cell = tf.nn.rnn_cell.BasicRNNCell(4)
        >>> outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 5, 3]), dtype=tf.float32)
        >>> outputs.shape.as_list(), state.shape.as_list()
        ([2, 5, 4], [2, 4])
    """
    check_is_cell(cell, "dynamic_rnn")
    with variable_scope(scope or "rnn"):
        flat = [convert_to_tensor(tensor) for tensor in nest.flatten(inputs)]
        if not time_major:
            flat = [swap_batch_and_time(tensor) for tensor in flat]
        batch_size = common_batch_size(flat)
        lengths = None if sequence_length is None else _checked_lengths(sequence_length, batch_size)
        state = _first_state(cell, initial_state, batch_size, dtype, "dynamic_rnn")
        inputs = nest.pack_sequence_as(inputs, flat)
        outputs, final_state = _loop(cell, inputs, state, lengths, batch_size, swap_memory, parallel_iterations)
        if not time_major:
            outputs = nest.map_structure(swap_batch_and_time, outputs)
        return outputs, final_state


def swap_batch_and_time(tensor: Tensor) -> Tensor:
    """``[time, batch, ...]`` from ``[batch, time, ...]``, and the other way round."""
    rank = tensor.shape.rank
    if rank is None:
        order = array_ops.concat([[1, 0], array_ops.range(2, array_ops.rank(tensor))], 0)
        return array_ops.transpose(tensor, order)
    if rank < 2:
        raise ValueError(f"sequences have shape [batch, time, ...], and {tensor!r} has rank {rank}")
    return array_ops.transpose(tensor, [1, 0, *range(2, rank)])


def common_batch_size(flat: Sequence[Tensor]) -> Any:
    """The size of the second axis of time-major inputs: a number where one of them knows it."""
    for tensor in flat:
        if tensor.shape.rank is not None and tensor.shape.as_list()[1] is not None:
            return tensor.shape.as_list()[1]
    return array_ops.shape(flat[0])[1]


def _checked_lengths(sequence_length: TensorLike, batch_size: TensorLike) -> Tensor:
    lengths = array_ops.cast(convert_to_tensor(sequence_length), dtypes.int32)
    if lengths.shape.rank not in (None, 1):
        raise ValueError(f"sequence_length must be a vector of length batch_size, but saw shape: {lengths.shape}")
    if lengths.shape.rank == 1 and isinstance(batch_size, int) and lengths.shape.as_list()[0] is not None:
        if lengths.shape.as_list()[0] != batch_size:
            raise ValueError(f"sequence_length has shape {lengths.shape}, and the batch size is {batch_size}")
        return lengths
    check = assert_equal(
        array_ops.shape(lengths), array_ops.stack([batch_size]), message="sequence_length needs one length per sequence"
    )
    with get_default_graph().control_dependencies([check]):
        lengths = array_ops.identity(lengths, "sequence_length")
    lengths.set_shape([batch_size if isinstance(batch_size, int) else None])
    return lengths


def _first_state(
    cell: RNNCell, initial_state: Structure, batch_size: TensorLike, dtype: DTypeLike | None, what: str
) -> Any:
    if initial_state is not None:
        return nest.map_structure(_as_part_of_state, initial_state)
    if dtype is None:
        raise ValueError(
            f"{what}: If there is no initial_state, you must give a dtype. Give initial_state, or the dtype of a state "
            "of zeros"
        )
    return cell.zero_state(batch_size, dtype)


def _as_part_of_state(value: TensorLike) -> Any:
    return value if nest.is_composite(value) else convert_to_tensor(value)


def _loop(
    cell: RNNCell,
    inputs: Structure,
    state: Any,
    lengths: Tensor | None,
    batch_size: TensorLike,
    swap_memory: bool,
    parallel_iterations: int | None,
) -> tuple[Any, Any]:
    """The outputs, time-major, and the last state."""
    flat = nest.flatten(inputs)
    static_steps, steps = _step_count(flat)
    for tensor in flat:
        if tensor.shape.rank is None or None in tensor.shape.as_list()[2:]:
            raise ValueError(
                f"Input size (depth of inputs) must be accessible via shape inference, but {tensor!r} has another size "
                "besides batch and time that is not known"
            )
    sources = [TensorArray(tensor.dtype, steps).unstack(tensor) for tensor in flat]
    output_dtype = flat[0].dtype if not nest.flatten(state) else _output_dtype(state, flat[0])
    outputs = nest.map_structure(
        lambda size: TensorArray(output_dtype, steps, element_shape=with_batch(size, batch_size)), cell.output_size
    )
    zero_output = None if lengths is None else zeros_of(cell.output_size, batch_size, output_dtype)
    # Stop after the longest sequence. Outputs that were not written read as zeros.
    bound = steps if lengths is None else math_ops.minimum(steps, math_ops.maximum(1, math_ops.reduce_max(lengths)))

    def body(time: Tensor, arrays: Any, state: Any) -> Any:
        current = nest.pack_sequence_as(inputs, [source.read(time) for source in sources])
        output, new_state = cell(current, state)
        _check_output(cell, output)
        if lengths is not None:
            ended = math_ops.greater_equal(time, lengths)
            output = copy_through(ended, zero_output, output)
            new_state = copy_through(ended, state, new_state)
        arrays = nest.map_structure(lambda array, value: array.write(time, value), arrays, output)
        return time + 1, arrays, new_state

    _, outputs, state = counted_loop(
        lambda time, *_: time < bound,
        body,
        (convert_to_tensor(0, name="time"), outputs, state),
        parallel_iterations=parallel_iterations or 32,
        swap_memory=swap_memory,
    )
    return nest.map_structure(lambda array: _stacked(array, static_steps), outputs), state


def _step_count(flat: Sequence[Tensor]) -> tuple[int | None, Any]:
    sizes = [tensor.shape.as_list()[0] for tensor in flat if tensor.shape.rank is not None]
    known = {size for size in sizes if size is not None}
    if len(known) > 1:
        raise ValueError(f"the inputs have different numbers of steps: {sorted(known)}")
    static = known.pop() if known else None
    return static, array_ops.shape(flat[0])[0] if static is None else static


def _output_dtype(state: Any, first_input: Tensor) -> Any:
    found = {part.dtype for part in nest.flatten(state) if isinstance(part, Tensor)}
    return found.pop() if len(found) == 1 else first_input.dtype


def _check_output(cell: RNNCell, output: Any) -> None:
    try:
        nest.assert_same_structure(cell.output_size, output, check_types=False)
    except ValueError as error:
        raise ValueError(f"{type(cell).__name__} returned another output than its output_size says: {error}") from None


def _stacked(array: TensorArray, steps: int | None) -> Tensor:
    stacked = array.stack()
    if array.element_shape.rank is not None:
        stacked.set_shape(TensorShape([steps]).concatenate(array.element_shape))
    return stacked


def copy_through(ended: Tensor, old: Structure, new: Structure) -> Any:
    """`old` where a sequence has ended, elsewhere `new`."""
    return nest.map_structure(lambda before, after: unless_ended(ended, before, after), old, new)


def unless_ended(ended: Tensor, before: Any, after: Any) -> Any:
    """`before` where a sequence has ended, elsewhere `after`."""
    if nest.is_composite(after) or after.shape.rank == 0:
        return after  # a TensorArray or a scalar belongs to the whole batch, not to one sequence
    chosen = array_ops.where(ended, before, after)
    chosen.set_shape(after.shape)
    return chosen


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Structure,
    sequence_length: TensorLike | None = None,
    initial_state_fw: Structure = None,
    initial_state_bw: Structure = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: ScopeLike | None = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Run one cell forward over sequences and another one backward.

    Args:
        cell_fw: The forward cell.
        cell_bw: The backward cell.
        inputs: Shape ``[batch, time, size]``, as for `dynamic_rnn`.
        sequence_length: Likewise; the backward cell begins at the end of each sequence.
        initial_state_fw: First state of the forward cell, ``[batch, state_size]``.
        initial_state_bw: First state of the backward cell, likewise.
        dtype: As for `dynamic_rnn`.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        swap_memory: As for `tf.while_loop`.
        time_major: As for `dynamic_rnn`.
        scope: Variable scope, or its name; ``bidirectional_rnn`` when None.

    Returns:
        The outputs of both, ``[batch, time, output_size]`` in the order of time, and the last states of both, ``[batch,
        state_size]``.

    Examples:
        >>> forward, backward = tf.nn.rnn_cell.BasicRNNCell(4), tf.nn.rnn_cell.BasicRNNCell(4)
        >>> outputs, states = tf.nn.bidirectional_dynamic_rnn(forward, backward, tf.ones([2, 5, 3]), dtype=tf.float32)
        >>> outputs[0].shape.as_list(), outputs[1].shape.as_list(), states[0].shape.as_list()
        ([2, 5, 4], [2, 5, 4], [2, 4])
    """
    check_is_cell(cell_fw, "bidirectional_dynamic_rnn: cell_fw")
    check_is_cell(cell_bw, "bidirectional_dynamic_rnn: cell_bw")
    options: dict[str, Any] = {
        "sequence_length": sequence_length,
        "dtype": dtype,
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "time_major": time_major,
    }

    def reversed_in_time(values: Structure) -> Any:
        return nest.map_structure(lambda value: _reversed(value, sequence_length, time_major), values)

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward_scope:
            forward, state_fw = dynamic_rnn(
                cell_fw, inputs, initial_state=initial_state_fw, scope=forward_scope, **options
            )
        with variable_scope("bw") as backward_scope:
            backward, state_bw = dynamic_rnn(
                cell_bw, reversed_in_time(inputs), initial_state=initial_state_bw, scope=backward_scope, **options
            )
        return (forward, reversed_in_time(backward)), (state_fw, state_bw)


def _reversed(value: TensorLike, sequence_length: TensorLike | None, time_major: bool) -> Tensor:
    time_axis = 0 if time_major else 1
    if sequence_length is None:
        return array_ops.reverse(convert_to_tensor(value), [time_axis])
    return array_ops.reverse_sequence(value, sequence_length, seq_axis=time_axis, batch_axis=1 - time_axis)


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[Structure],
    initial_state: Structure = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: ScopeLike | None = None,
) -> tuple[list[Any], Any]:
    """Run a cell over a list of inputs: the graph holds the cell once for each step.

    Args:
        cell: The cell.
        inputs: One input for each step, ``[batch, size]`` or a nested structure of such tensors.
        initial_state: The first state, ``[batch, state_size]`` or in the structure of the cell's `state_size`; zeros
            when None.
        dtype: Dtype of that, needed when `initial_state` is None.
        sequence_length: Integers ``[batch]``, as for `dynamic_rnn`.
        scope: Variable scope, or its name; ``rnn`` when None.

    Returns:
        A list with the output of each step, ``[batch, output_size]``, and the last state, in the shape of the first
        one.

    Raises:
        TypeError: `inputs` is not a list.
        ValueError: `inputs` is empty, or neither `initial_state` nor `dtype` is given.
    """
    check_is_cell(cell, "static_rnn")
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"static_rnn takes a list with the input of each step (tf.unstack makes one), not {inputs!r}")
    if not inputs:
        raise ValueError("static_rnn: there are no inputs")
    with variable_scope(scope or "rnn") as opened:
        first = convert_to_tensor(nest.flatten(inputs[0])[0])
        batch_size = batch_size_of(first)
        state = _first_state(cell, initial_state, batch_size, dtype, "static_rnn")
        lengths = None if sequence_length is None else _checked_lengths(sequence_length, batch_size)
        zero_output = None
        outputs = []
        for time, current in enumerate(inputs):
            if time > 0:
                opened.reuse_variables()
            output, new_state = cell(current, state)
            if lengths is not None:
                if zero_output is None:
                    kinds = nest.map_structure(lambda value: value.dtype, output)
                    zero_output = zeros_of(cell.output_size, batch_size, kinds)
                ended = math_ops.less_equal(lengths, time)
                output = copy_through(ended, zero_output, output)
                new_state = copy_through(ended, state, new_state)
            outputs.append(output)
            state = new_state
        return outputs, state


def static_state_saving_rnn(
    cell: RNNCell,
    inputs: Sequence[Structure],
    state_saver: Any,
    state_name: Any,
    sequence_length: TensorLike | None = None,
    scope: ScopeLike | None = None,
) -> tuple[list[Any], Any]:
    """As `static_rnn`, from a state that `state_saver` keeps between steps of the session.

    Args:
        cell: The cell.
        inputs: One input for each step, ``[batch, size]``.
        state_saver: Has the methods ``state(name)`` and ``save_state(name, value)``.
        state_name: Name of the state, or a structure of names like the cell's `state_size`.
        sequence_length: Integers ``[batch]``, as for `dynamic_rnn`.
        scope: Variable scope, or its name.

    Returns:
        The outputs, ``[batch, output_size]``, the last of which waits until the state is saved, and the last state.
    """
    names = nest.flatten(state_name)
    if len(names) != len(nest.flatten(cell.state_size)):
        raise ValueError(f"state_name has {len(names)} names, and the state of the cell has another number of parts")
    initial = nest.pack_sequence_as(cell.state_size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(cell, inputs, initial_state=initial, sequence_length=sequence_length, scope=scope)
    saved = [state_saver.save_state(name, part) for name, part in zip(names, nest.flatten(state), strict=True)]
    with get_default_graph().control_dependencies(saved):
        outputs[-1] = nest.map_structure(array_ops.identity, outputs[-1])
    return outputs, state


def static_bidirectional_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Sequence[Structure],
    initial_state_fw: Structure = None,
    initial_state_bw: Structure = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: ScopeLike | None = None,
) -> tuple[list[Any], Any, Any]:
    """Run one cell forward over a list of inputs and another one backward.

    Args:
        cell_fw: The forward cell.
        cell_bw: The backward cell.
        inputs: One input for each step, ``[batch, size]``.
        initial_state_fw: First state of the forward cell, ``[batch, state_size]``.
        initial_state_bw: First state of the backward cell, likewise.
        dtype: As for `static_rnn`.
        sequence_length: Integers ``[batch]``, as for `dynamic_rnn`.
        scope: Variable scope, or its name; ``bidirectional_rnn`` when None.

    Returns:
        For each step the outputs of both, joined along the second axis, ``[batch, both output sizes]``; and the last
        states of both.
    """
    check_is_cell(cell_fw, "static_bidirectional_rnn: cell_fw")
    check_is_cell(cell_bw, "static_bidirectional_rnn: cell_bw")
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward_scope:
            forward, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, forward_scope)
        with variable_scope("bw") as backward_scope:
            backward, state_bw = static_rnn(
                cell_bw,
                reversed_list(inputs, sequence_length),
                initial_state_bw,
                dtype,
                sequence_length,
                backward_scope,
            )
        backward = reversed_list(backward, sequence_length)
    outputs = [
        nest.map_structure(lambda a, b: array_ops.concat([a, b], 1), fw, bw)
        for fw, bw in zip(forward, backward, strict=True)
    ]
    return outputs, state_fw, state_bw


def reversed_list(values: Sequence[Structure], sequence_length: TensorLike | None) -> list[Any]:
    if sequence_length is None:
        return list(reversed(values))
    flat = [nest.flatten(value) for value in values]
    columns = [
        array_ops.unstack(array_ops.reverse_sequence(array_ops.stack(steps), sequence_length, seq_axis=0, batch_axis=1))
        for steps in zip(*flat, strict=True)
    ]
    return [nest.pack_sequence_as(values[0], list(step)) for step in zip(*columns, strict=True)]


def raw_rnn(
    cell: RNNCell,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: ScopeLike | None = None,
) -> tuple[Any, Any, Any]:
    """Run a cell in a loop. A function chooses the inputs, outputs and states, and decides when to end.

    ``loop_fn(time, cell_output, cell_state, loop_state)`` returns
    ``(finished, next_input, next_state, emit_output, next_loop_state)``. It is called first with time 0 and None for
    the rest: it then returns the first input and state, and as ``emit_output`` a structure of zeros that shows what
    is emitted (None: what the cell returns). ``finished`` is a bool vector, one element for each sequence; the loop
    ends when all are finished. What a finished sequence emits is zeros, and its state stays.

    Args:
        cell: The cell.
        loop_fn: The function.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        swap_memory: As for `tf.while_loop`.
        scope: Variable scope, or its name; ``rnn`` when None.

    Returns:
        A `TensorArray` with what was emitted (or a structure of them), the last state, and the last loop state.
    """
    check_is_cell(cell, "raw_rnn")
    if not callable(loop_fn):
        raise TypeError(f"raw_rnn: loop_fn must be a function, not {loop_fn!r}")
    with variable_scope(scope or "rnn"):
        time = convert_to_tensor(0, name="time")
        finished, current, state, emitted, loop_state = loop_fn(time, None, None, None)
        has_loop_state = loop_state is not None
        current = nest.map_structure(convert_to_tensor, current)
        state = nest.map_structure(_as_part_of_state, state)
        batch_size = _batch_of(nest.flatten(current))
        sizes, kinds = _emitted_form(cell, emitted, state)
        zeros = zeros_of(sizes, batch_size, kinds)
        arrays = _emit_arrays(sizes, kinds, batch_size)

        def body(time: Tensor, finished: Tensor, current: Any, arrays: Any, state: Any, loop_state: Any) -> Any:
            output, cell_state = cell(current, state)
            decided = loop_fn(time + 1, output, cell_state, loop_state if has_loop_state else None)
            ends, following, next_state, emit, next_loop_state = decided
            nest.assert_same_structure(state, next_state, check_types=False)
            emit = copy_through(finished, zeros, emit)
            next_state = copy_through(finished, state, nest.map_structure(_as_part_of_state, next_state))
            arrays = nest.map_structure(lambda array, value: array.write(time, value), arrays, emit)
            ended = math_ops.logical_or(finished, convert_to_tensor(ends))
            following = nest.map_structure(convert_to_tensor, following)
            return time + 1, ended, following, arrays, next_state, next_loop_state if has_loop_state else loop_state

        initial = (time, convert_to_tensor(finished), current, arrays, state, loop_state if has_loop_state else 0)
        results = while_loop(
            lambda time, finished, *_: math_ops.logical_not(math_ops.reduce_all(finished)),
            body,
            initial,
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        return results[3], results[4], results[5] if has_loop_state else None


def _batch_of(flat: Sequence[Tensor]) -> Any:
    for tensor in flat:
        if tensor.shape.rank and tensor.shape.as_list()[0] is not None:
            return tensor.shape.as_list()[0]
    return array_ops.shape(flat[0])[0]


def _emitted_form(cell: RNNCell, emitted: Structure, state: Any) -> tuple[Any, Any]:
    """Sizes and dtypes of what is emitted, from the example that `loop_fn` gave."""
    if emitted is None:
        kind = nest.flatten(state)[0].dtype
        return cell.output_size, nest.map_structure(lambda _: kind, cell.output_size)
    emitted = nest.map_structure(convert_to_tensor, emitted)
    for tensor in nest.flatten(emitted):
        if not tensor.shape.is_fully_defined():
            raise InvalidArgumentError(f"raw_rnn: the first emit_output has an unknown shape: {tensor!r}")
    return nest.map_structure(lambda tensor: tensor.shape, emitted), nest.map_structure(lambda t: t.dtype, emitted)


def _emit_arrays(sizes: Any, kinds: Any, batch_size: TensorLike) -> Any:
    flat = [
        TensorArray(kind, 0, dynamic_size=True, element_shape=with_batch(size, batch_size))
        for size, kind in zip(nest.flatten(sizes), nest.flatten(kinds), strict=True)
    ]
    return nest.pack_sequence_as(sizes, flat)


def stack_bidirectional_rnn(
    cells_fw: Sequence[RNNCell],
    cells_bw: Sequence[RNNCell],
    inputs: Sequence[TensorLike],
    initial_states_fw: Sequence[Structure] | None = None,
    initial_states_bw: Sequence[Structure] | None = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: ScopeLike | None = None,
) -> tuple[list[Any], tuple[Any, ...], tuple[Any, ...]]:
    """As `stack_bidirectional_dynamic_rnn`, over a list with the input of each step, ``[batch, size]``."""
    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise ValueError(f"there are {len(cells_fw)} forward and {len(cells_bw)} backward cells")
    states_fw, states_bw = [], []
    outputs = list(inputs)
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for index, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{index}") as cell_scope:
                outputs, state_fw, state_bw = static_bidirectional_rnn(
                    cell_fw,
                    cell_bw,
                    outputs,
                    initial_states_fw[index] if initial_states_fw else None,
                    initial_states_bw[index] if initial_states_bw else None,
                    dtype,
                    sequence_length,
                    cell_scope,
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return outputs, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[RNNCell],
    cells_bw: Sequence[RNNCell],
    inputs: TensorLike,
    initial_states_fw: Sequence[Structure] | None = None,
    initial_states_bw: Sequence[Structure] | None = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: ScopeLike | None = None,
    swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of bidirectional networks, each of which gets the joined outputs of the one below.

    Args:
        cells_fw: The forward cells, the lowest first.
        cells_bw: As many backward cells.
        inputs: Shape ``[batch, time, size]``, as for `dynamic_rnn`.
        initial_states_fw: First states of the forward cells, each ``[batch, state_size]``.
        initial_states_bw: First states of the backward cells, likewise.
        dtype: As for `dynamic_rnn`.
        sequence_length: Likewise.
        parallel_iterations: Accepted for TensorFlow 1's sake.
        time_major: As for `dynamic_rnn`.
        scope: Variable scope, or its name; ``stack_bidirectional_rnn`` when None.
        swap_memory: As for `tf.while_loop`.

    Returns:
        The joined outputs of the last layer, ``[batch, time, both output sizes]``, and the last states of all forward
        and all backward cells.
    """
    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise ValueError(f"there are {len(cells_fw)} forward and {len(cells_bw)} backward cells")
    states_fw, states_bw = [], []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for index, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{index}"):
                outputs, (state_fw, state_bw) = bidirectional_dynamic_rnn(
                    cell_fw,
                    cell_bw,
                    inputs,
                    initial_state_fw=initial_states_fw[index] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[index] if initial_states_bw else None,
                    dtype=dtype,
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
                inputs = array_ops.concat(list(outputs), 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return inputs, tuple(states_fw), tuple(states_bw)
