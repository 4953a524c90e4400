"""The base of ``tf.layers``: layers whose losses and updates go to the collections of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers import keras_layer
from tfray.library.layers.keras_layer import snake_case as snake_case
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_store import Reuse
from tfray.library.variables.variables import VariableAggregation, VariableSynchronization


class Layer(keras_layer.Layer):
    """A layer of ``tf.layers``, which models of ``tf.keras`` take too; see `tf.keras.layers.Layer`.

    The first call opens a variable scope, named after the layer or by ``scope=``, in which its variables are.
    Its losses go to ``GraphKeys.REGULARIZATION_LOSSES`` and its updates to ``GraphKeys.UPDATE_OPS``.
    """

    _first_number: ClassVar[int] = 1
    _in_collections: ClassVar[bool] = True

    def add_weight(  # type: ignore[override]  # the order of arguments is another one in TensorFlow, too
        self,
        name: str | None = None,
        shape: ShapeLike = None,
        dtype: DTypeLike | None = None,
        initializer: InitializerLike | None = None,
        regularizer: RegularizerFunction | None = None,
        trainable: bool | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        partitioner: Partitioner | None = None,
        **kwargs: Any,
    ) -> Any:
        """Make a variable of the layer, or find it; see `tf.keras.layers.Layer.add_weight`."""
        given = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        return super().add_weight(**given, **kwargs)


def checked_shape(
    layer: Layer, input_shape: ShapeLike, rank: int | None = None, axis: int = -1, what: str = "last dimension"
) -> int:
    """The size along `axis` of an input, which must be known.

    Args:
        layer: The layer that asks, for the message.
        input_shape: Static shape of the input.
        rank: The rank it must have; any from 2 on when None.
        axis: The axis.
        what: What the axis is, for the message.

    Raises:
        InvalidArgumentError: It has another rank, or the size is not known.
    """
    shape = TensorShape(input_shape)
    if shape.rank is not None and (shape.rank != rank if rank is not None else shape.rank < 2):
        wanted = "2 or more" if rank is None else rank
        raise InvalidArgumentError(f"{layer.name}: the input has shape {shape}, expected rank {wanted}")
    size = None if shape.rank is None else shape.as_list()[axis]
    if size is None:
        raise InvalidArgumentError(
            f"The {what} of the inputs to `{type(layer).__name__}` should be defined: {layer.name} got shape "
            f"{shape}, and that size must be known"
        )
    return int(size)


def apply_layer(
    kind: Callable[..., Layer], inputs: TensorLike, name: str | None, reuse: Reuse | None, **settings: Any
) -> Any:
    """Make a layer under a name and call it: what the layers in the form of functions do.

    `settings` are the other arguments of the layer, by name; ``training`` is one of the call.
    """
    inputs = convert_to_tensor(inputs)
    called = {"training": settings.pop("training")} if "training" in settings else {}
    return kind(name=name, dtype=inputs.dtype, _scope=name, _reuse=reuse, **settings)(inputs, **called)
