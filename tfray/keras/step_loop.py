"""``tf.keras.backend.rnn``: a function of one step over sequences, with masks. Recurrent layers run cells by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import TensorShape
from tfray.library.rnn.rnn import swap_batch_and_time
from tfray.ops.arrays import array_ops
from tfray.ops.control.control_flow_ops import counted_loop
from tfray.ops.control.tensor_array_ops import TensorArray


def rnn(
    step_function: Callable[[Any, Any], tuple[Any, Any]],
    inputs: Any,
    initial_states: Any,
    go_backwards: bool = False,
    mask: Any = None,
    constants: Sequence[Any] | None = None,
    unroll: bool = False,
    input_length: Any = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """Go over the steps of sequences.

    Args:
        step_function: From the inputs of one step, ``[batch, ...]``, and the states followed by the constants, to the
            output, ``[batch, ...]``, and the new states.
        inputs: Shape ``[batch, time, ...]``, or a structure of such tensors.
        initial_states: A list of the first states.
        go_backwards: Begin at the end; the outputs are in the order in which they are made.
        mask: Bools ``[batch, time]``. Where it is False, states stay, and the output is that of the step before, or
            zeros in the first steps.
        constants: Tensors that each step is given.
        unroll: Make operations for each step, in place of a loop. The number of steps must be known.
        input_length: The number of steps, where it is not known.
        time_major: Inputs, mask and outputs are ``[time, batch, ...]``.
        zero_output_for_mask: Outputs of masked steps are zeros.

    Returns:
        The last output, the outputs of all steps, ``[batch, time, ...]``, and a list of the last states.

    Raises:
        ValueError: `unroll`, and the number of steps is not known.
    """
    constants = list(constants or ())
    initial_states = nest.map_structure(convert_to_tensor, list(initial_states))
    flat = [convert_to_tensor(tensor) for tensor in nest.flatten(inputs)]
    if not time_major:
        flat = [swap_batch_and_time(tensor) for tensor in flat]
    masks = [] if mask is None else [_time_major_mask(mask, time_major)]
    if go_backwards:
        flat, masks = ([array_ops.reverse(tensor, [0]) for tensor in tensors] for tensors in (flat, masks))
    static = next((size for size in (t.shape.as_list()[0] for t in flat) if size is not None), None)

    def step(current: Sequence[Tensor], kept: Any, states: Any) -> tuple[Any, Any]:
        """Output and states after one step; `kept` is the output where the mask is False."""
        output, after = step_function(nest.pack_sequence_as(inputs, current[: len(flat)]), [*states, *constants])
        after = nest.pack_sequence_as(states, nest.flatten(after))
        if masks:
            shown = current[-1]
            kept = nest.map_structure(array_ops.zeros_like, output) if kept is None else kept
            output = nest.map_structure(lambda new, old: _chosen(shown, new, old), output, kept)
            after = nest.map_structure(lambda new, old: _chosen(shown, new, old), after, states)
        return output, after

    if unroll:
        if static is None:
            raise ValueError("Unrolling requires a fixed number of timesteps.")
        return _unrolled(step, [*flat, *masks], static, initial_states, zero_output_for_mask, time_major)
    steps = static if static is not None else array_ops.shape(flat[0])[0] if input_length is None else input_length
    outputs, states = _looped(step, [*flat, *masks], steps, initial_states, bool(masks), zero_output_for_mask)
    for made in nest.flatten(outputs):
        made.set_shape(TensorShape([static]).concatenate(made.shape[1:]))
    return _result(outputs, states, time_major)


def _looped(
    step: Callable[..., tuple[Any, Any]],
    tensors: Sequence[Tensor],
    steps: Any,
    states: Any,
    is_masked: bool,
    zeros: bool,
) -> tuple[Any, Any]:
    """The outputs of all steps, time-major, and the last states."""
    sources = [TensorArray(tensor.dtype, steps).unstack(tensor) for tensor in tensors]
    # What one step gives says what the arrays of outputs hold; nothing runs it.
    likeness, _ = step([tensor[0] for tensor in tensors], None, states)
    arrays = nest.map_structure(lambda each: TensorArray(each.dtype, steps, element_shape=each.shape), likeness)

    def body(time: Tensor, arrays: Any, kept: Any, states: Any) -> Any:
        output, after = step([source.read(time) for source in sources], kept, states)
        arrays = nest.map_structure(lambda array, value: array.write(time, value), arrays, output)
        return time + 1, arrays, output if is_masked and not zeros else kept, after

    first = nest.map_structure(array_ops.zeros_like, likeness) if is_masked else ()
    _, arrays, _, states = counted_loop(
        lambda time, *_: time < steps,
        body,
        (convert_to_tensor(0, name="time"), arrays, first, states),
        parallel_iterations=32,
    )
    return nest.map_structure(TensorArray.stack, arrays), states


def _result(outputs: Any, states: Any, time_major: bool) -> tuple[Any, Any, list[Any]]:
    last = nest.map_structure(lambda each: each[-1], outputs)
    if not time_major:
        outputs = nest.map_structure(swap_batch_and_time, outputs)
    return last, outputs, list(states)


def _unrolled(
    step: Callable[..., tuple[Any, Any]],
    sources: Sequence[Tensor],
    steps: int,
    states: Any,
    zero_output_for_mask: bool,
    time_major: bool,
) -> tuple[Any, Any, list[Any]]:
    made, kept = [], None
    for time in range(steps):
        output, states = step([source[time] for source in sources], kept, states)
        made.append(output)
        kept = None if zero_output_for_mask else output
    stacked = nest.map_structure(lambda *values: array_ops.stack(values), *made)
    return _result(stacked, states, time_major)


def _time_major_mask(mask: Any, time_major: bool) -> Tensor:
    mask = array_ops.cast(mask, "bool")
    if mask.shape.rank == 3:
        mask = array_ops.squeeze(mask, [-1])
    return mask if time_major else swap_batch_and_time(mask)


def _chosen(shown: Tensor, new: Any, old: Any) -> Any:
    """`new` for examples whose step is shown, else `old`."""
    chosen = array_ops.where(shown, new, old)
    chosen.set_shape(new.shape)
    return chosen
