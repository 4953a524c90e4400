"""The base of recurrent cells: a cell is a layer that is called with an input and a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype
from tfray.framework.graph import Tensor, get_default_graph
from tfray.framework.tensor_shape import ShapeLike, TensorShape, as_shape
from tfray.framework.type_aliases import Activation, TensorLike
from tfray.library.layers.base_layer import Layer, checked_shape
from tfray.library.variables.variable_scope import ScopeLike, get_variable_scope, variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.math import transcendental_ops
from tfray.ops.nn import activation_ops, cross_entropy_ops


class RNNCell(Layer):
    """One step of a recurrent network: ``output, new_state = cell(inputs, state)``.

    A subclass defines `state_size`, `output_size` and ``call(inputs, state)``, which may use `tf.get_variable`.
    """

    def __call__(self, inputs: TensorLike, state: Any, scope: ScopeLike | None = None) -> Any:
        """Run one step.

        Args:
            inputs: Shape ``[batch, size]``.
            state: Tensors in the structure of `state_size`, each ``[batch, size]``.
            scope: Variable scope of the first call; by default one named after the class.

        Returns:
            The output, ``[batch, output_size]``, and the new state, in the structure of `state`.
        """
        if scope is None:
            with variable_scope(get_variable_scope(), custom_getter=self._remembering, auxiliary_name_scope=False):
                return super().__call__(inputs, state)
        with variable_scope(scope, custom_getter=self._remembering) as opened:
            return super().__call__(inputs, state, scope=opened)

    def _remembering(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A variable getter: variables that `call` gets by `tf.get_variable` also count as the layer's."""
        variable = getter(*args, **kwargs)
        if not any(variable is known for known in (*self._trainable_weights, *self._non_trainable_weights)):
            self._own_weights(getattr(variable, "trainable", kwargs.get("trainable"))).append(variable)
        return variable

    @property
    def state_size(self) -> Any:
        """Sizes of the state: a number, a shape without the batch, or a structure of these."""
        raise AttributeError(f"{type(self).__name__} must define state_size")

    @property
    def output_size(self) -> Any:
        """Size of the output, in the same form."""
        raise AttributeError(f"{type(self).__name__} must define output_size")

    def build(self, inputs_shape: ShapeLike) -> None:
        self.built = True

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        """A state of zeros.

        Args:
            batch_size: A number or int32 scalar.
            dtype: Dtype.
        """
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return zeros_of(self.state_size, batch_size, dtype)

    def get_initial_state(
        self, inputs: TensorLike | None = None, batch_size: TensorLike | None = None, dtype: DTypeLike | None = None
    ) -> Any:
        """A state of zeros, for the batch size and dtype of `inputs` where they are given."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs)
            batch_size, dtype = batch_size_of(inputs), inputs.dtype
        if batch_size is None or dtype is None:
            raise InvalidArgumentError("get_initial_state needs inputs, or both batch_size and dtype")
        return self.zero_state(batch_size, dtype)


class LayerRNNCell(RNNCell):
    """A cell whose `build` makes its variables."""

    def __call__(self, inputs: TensorLike, state: Any, scope: ScopeLike | None = None) -> Any:
        return Layer.__call__(self, inputs, state, scope=scope)


def input_size(cell: Layer, inputs_shape: ShapeLike) -> int:
    """The last dimension of a cell's inputs. Raises `InvalidArgumentError` when it is not known."""
    shape = TensorShape(inputs_shape)
    if shape.rank == 2 and shape.sizes[1] is None:
        raise InvalidArgumentError(f"{cell.name}: Expected inputs.shape[-1] to be known, saw shape: {shape}")
    return checked_shape(cell, shape, rank=2)


def activation_named(activation: str | Activation | None, default: Any) -> Any:
    """An activation function, by its name perhaps; `default` for None."""
    if activation is None:
        return default
    if callable(activation):
        return activation
    for names in (transcendental_ops, activation_ops, cross_entropy_ops):
        found = getattr(names, activation, None)
        if found is not None:
            return found
    raise InvalidArgumentError(f"there is no activation function {activation!r}")


def with_batch(size: ShapeLike, batch_size: TensorLike | None) -> TensorShape:
    """The static shape of a state or output of that size: a number, or a shape without the batch."""
    batch = batch_size if isinstance(batch_size, int) else None
    return TensorShape([batch]).concatenate(as_shape([size] if isinstance(size, int) else size))


def zeros_of(sizes: Any, batch_size: TensorLike, dtype: DTypeLike) -> Any:
    """Zeros for every size of a structure (see `with_batch`); `dtype` may be one, or one for each.

    Args:
        sizes: A size, or a structure of sizes.
        batch_size: A number or int32 scalar.
        dtype: A dtype, or a structure of them like `sizes`.
    """
    batch_size = batch_size if isinstance(batch_size, int) else _known_scalar(batch_size)
    flat = nest.flatten(sizes)
    dtypes = nest.flatten(dtype) if nest.is_nested(dtype) else [dtype] * len(flat)
    zeros = [_zeros(size, batch_size, as_dtype(each)) for size, each in zip(flat, dtypes, strict=True)]
    return nest.pack_sequence_as(sizes, zeros)


def _known_scalar(value: TensorLike) -> Any:
    tensor = convert_to_tensor(value)
    known = constant_value(tensor)
    return tensor if known is None else int(known)


def _zeros(size: ShapeLike, batch_size: TensorLike, dtype: DTypeLike) -> Tensor:
    static = with_batch(size, batch_size)
    if static.is_fully_defined():
        return array_ops.zeros(static, dtype)
    zeros = array_ops.zeros(array_ops.stack([batch_size, *map(int, static[1:])]), dtype)
    zeros.set_shape(static)
    return zeros


def batch_size_of(tensor: Tensor, axis: int = 0) -> Any:
    """The size of a tensor along `axis`: a number where it is known, otherwise an int32 scalar."""
    known = tensor.shape.as_list()[axis] if tensor.shape.rank is not None else None
    return array_ops.shape(tensor)[axis] if known is None else known


def check_is_cell(cell: RNNCell, what: str) -> None:
    """Raise `TypeError` unless `cell` can be used as a recurrent cell."""
    missing = [name for name in ("output_size", "state_size", "zero_state") if not hasattr(cell, name)]
    if missing or not callable(cell):
        lacks = f"lacks {', '.join(missing)}" if missing else "cannot be called"
        raise TypeError(f"{what}: {cell!r} is no RNNCell: it {lacks}")
