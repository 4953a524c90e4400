"""The base of layers: objects that make variables when they first see an input, and share them from then on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType, DTypeLike, as_dtype
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.tensor_shape import ShapeLike, TensorShape
from tfray.framework.type_aliases import TensorLike
from tfray.library.layers import named_initializers
from tfray.library.layers.input_spec import check_inputs
from tfray.library.layers.keras_style import is_keras_style
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.partitioned_variables import Partitioner
from tfray.library.variables.regularizers import RegularizerFunction
from tfray.library.variables.variable_scope import (
    ScopeLike,
    VariableScope,
    get_variable,
    get_variable_scope,
    variable_scope,
)
from tfray.library.variables.variable_store import Reuse, VariableRequest, VariableStore
from tfray.library.variables.variables import VariableAggregation, VariableSynchronization
from tfray.ops.arrays import array_ops


class Layer:
    """A part of a model with variables of its own.

        class Scale(tf.layers.Layer):
            def build(self, input_shape):
                self.factor = self.add_weight("factor", [input_shape[-1]])
                super().build(input_shape)

            def call(self, inputs):
                return inputs * self.factor

    A layer is called with its inputs. The first call opens a variable scope, runs `build` with the shape of the
    inputs and then `call`; further calls run `call` alone, and so use the same variables.

    Args:
        trainable: Whether optimizers are to change the variables.
        name: Name of the variable scope, made unique; by default that of the class, ``max_pooling2d``.
        dtype: Dtype of variables; when None that of the first inputs if they are floating, else of the variable scope.

    Attributes:
        built: Whether `build` has run.
        trainable: As given.
        input_spec: None, or an `InputSpec`, or a list of them, against which each call checks its inputs.
    """

    _first_number: ClassVar[int] = 1  # of the first layer without a name; 0 stands for none

    def __init__(
        self,
        trainable: bool = True,
        name: str | VariableScope | None = None,
        dtype: DTypeLike | None = None,
        *,
        _scope: str | VariableScope | None = None,
        _reuse: Reuse | None = None,
        activity_regularizer: Callable[[Tensor], Tensor | None] | None = None,
    ) -> None:
        self.trainable = trainable
        self.built = False
        self.input_spec: Any = None
        self._dtype = as_dtype(get_variable_scope().dtype if dtype is None else dtype)
        self._takes_dtype_of_inputs = dtype is None
        self._reuse = _reuse
        self._activity_regularizer = activity_regularizer
        base = name.name if isinstance(name, VariableScope) else name
        self._base_name = base or snake_case(type(self).__name__)
        self._name = base or _unique_layer_name(self._base_name, self._first_number)
        self._scope: VariableScope | None = None
        # TensorFlow's names: layers of programs may add to these lists.
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._losses: list[Tensor] = []
        self._updates: list[Any] = []
        self._recorded_calls: list[tuple[Any, Any]] = []
        self._own_variables = VariableStore() if is_keras_style() else None
        if self._own_variables is not None:
            _refuse_in_keras_style(scope=_scope, reuse=_reuse)
        if _scope:
            with variable_scope(_scope) as scope:
                self._scope = scope

    # -- what layers override --------------------------------------------------------------------

    def build(self, input_shape: ShapeLike) -> None:
        """Make the variables, given the static shape of the inputs (or a list of shapes)."""
        self.built = True

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Compute the outputs from the inputs."""
        return inputs

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        """Static shape of the output for an input of that static shape; by default the same."""
        return TensorShape(input_shape)

    # -- calling ---------------------------------------------------------------------------------

    def __call__(self, inputs: TensorLike, *args: Any, **kwargs: Any) -> Any:
        """The outputs; arguments besides the inputs go to `call`."""
        inputs = nest.map_structure(_as_tensor, inputs)
        if self._takes_dtype_of_inputs and not self.built:
            self._dtype = next((t.dtype for t in nest.flatten(inputs) if t.dtype.is_floating), self._dtype)
        with self._entered(kwargs.pop("scope", None)):
            if not self.built:
                check_inputs(self.input_spec, nest.flatten(inputs), self.name)
                self.build(nest.map_structure(lambda tensor: tensor.shape, inputs))
                self.built = True
            check_inputs(self.input_spec, nest.flatten(inputs), self.name)
            outputs = self.call(inputs, *args, **kwargs)
            self._regularize_activity(outputs)
        self._recorded_calls.append((inputs, outputs))
        return outputs

    @contextmanager
    def _entered(self, scope: ScopeLike | None) -> Iterator[None]:
        """The scopes in which a call builds its operations and variables."""
        graph = get_default_graph()
        if self._own_variables is not None:
            _refuse_in_keras_style(scope=scope)
            with graph.name_scope(self._name):
                yield
            return
        own = self.first_scope(scope)
        reuse = True if self.built else self._reuse
        with (
            variable_scope(own, reuse=reuse, auxiliary_name_scope=False) as opened,
            graph.name_scope(opened.original_name_scope or None),
        ):
            yield

    def apply(self, inputs: TensorLike, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the layer."""
        return self(inputs, *args, **kwargs)

    def first_scope(self, scope: ScopeLike | None) -> VariableScope:
        """The scope of the layer's variables, which the first call decides: `scope`, or one named after the layer."""
        if self._scope is None:
            if self._reuse:
                context = variable_scope(self._base_name if scope is None else scope)
            else:
                context = variable_scope(scope, default_name=self._base_name)
            with context as opened:
                self._scope = opened
        return self._scope

    def _regularize_activity(self, outputs: TensorLike) -> None:
        if self._activity_regularizer is None:
            return
        graph = get_default_graph()
        with graph.name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = self._activity_regularizer(output)
                if loss is not None:
                    examples = array_ops.cast(array_ops.shape(output)[0], loss.dtype)
                    self.add_loss(loss / examples, inputs=outputs)  # as strong for a batch of any size

    # -- variables -------------------------------------------------------------------------------

    def add_weight(
        self,
        name: str,
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
        experimental_autocast: bool | None = None,
    ) -> Any:
        """Make a variable of the layer, or find it where the layer shares those of another.

        Args:
            name: Name within the scope of the layer.
            shape: Shape; a scalar when None.
            dtype: Dtype; that of the layer when None.
            initializer: As for `tf.get_variable`, or the name of one in `tf.keras.initializers`.
            regularizer: Likewise; the loss belongs to the layer too.
            trainable: Whether optimizers are to change it; by default as the layer, and not where `synchronization` is
                ``ON_READ``.
            constraint: As for `tf.get_variable`, like the arguments that follow.
            use_resource: Accepted for TensorFlow 1's sake.
            synchronization: When copies are made equal.
            aggregation: How updates of copies are put together.
            partitioner: What cuts the variable into parts.
            experimental_autocast: Accepted for TensorFlow 1's sake.

        Returns:
            The variable.

        Raises:
            ValueError: `trainable` is True and `synchronization` is ``ON_READ``.
        """
        if synchronization is VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    f"variable {name!r}: Synchronization value can be set to VariableSynchronization.ON_READ only for "
                    "non-trainable variables"
                )
            trainable = False
        graph = get_default_graph()
        before = len(graph.get_collection_ref(GraphKeys.REGULARIZATION_LOSSES))
        settings: dict[str, Any] = {
            "shape": () if shape is None else shape,
            "dtype": self._dtype if dtype is None else dtype,
            "initializer": named_initializers.get(initializer),
            "regularizer": regularizer,
            "trainable": self.trainable and (trainable is None or trainable),
            "partitioner": partitioner,
            "constraint": constraint,
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        if self._own_variables is not None:
            full_name = f"{graph.get_name_scope()}/{name}".lstrip("/")
            with graph.name_scope(None):
                variable = self._own_variables.get(VariableRequest(full_name, **settings))
        else:
            own = self.first_scope(None)
            inside = get_variable_scope().name == own.name
            with _nothing() if inside else variable_scope(own, reuse=self._reuse, auxiliary_name_scope=False):
                variable = get_variable(name, **settings)
        self._losses += graph.get_collection_ref(GraphKeys.REGULARIZATION_LOSSES)[before:]
        # This layer decides whether the variable is trainable here, even if another layer made it.
        self._own_weights(trainable).append(variable)
        return variable

    def _own_weights(self, trainable: bool | None) -> list[Any]:
        """The list of those variables that are trainable, or of those that are not."""
        return self._trainable_weights if trainable is None or trainable else self._non_trainable_weights

    add_variable = add_weight

    @property
    def variables(self) -> list[Any]:
        """All variables of the layer, the trainable ones first."""
        return self.trainable_variables + self.non_trainable_variables

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that optimizers change."""
        return _parts(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The variables that optimizers leave alone."""
        return _parts([*([] if self.trainable else self._trainable_weights), *self._non_trainable_weights])

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    def count_params(self) -> int:
        """Number of elements of all variables."""
        if not self.built:
            raise InvalidArgumentError(f"layer {self.name!r} has no variables yet: call or build it first")
        return sum(variable.shape.num_elements() or 0 for variable in self.variables)

    # -- losses and updates ----------------------------------------------------------------------

    def add_loss(self, losses: Any, inputs: TensorLike | None = None) -> None:
        """Add losses of the layer, such as of its activations; they go to ``GraphKeys.REGULARIZATION_LOSSES``."""
        for loss in losses if isinstance(losses, (list, tuple)) else [losses]:
            self._losses.append(loss)
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_update(self, updates: TensorLike, inputs: TensorLike | None = None) -> None:
        """Add operations to run with each training step.

        They go to ``GraphKeys.UPDATE_OPS``, but for layers that are made in `tf.layers.experimental.keras_style_scope`.
        """
        for update in updates if isinstance(updates, (list, tuple)) else [updates]:
            self._updates.append(update)
            if self._own_variables is None:
                get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)

    @property
    def losses(self) -> list[Tensor]:
        """Losses of regularizers and those that `add_loss` added."""
        return list(self._losses)

    @property
    def updates(self) -> list[Any]:
        """What `add_update` added; nothing for a layer that is not trainable."""
        return list(self._updates) if self.trainable else []

    # -- what it is ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the layer."""
        return self._name

    @property
    def scope_name(self) -> str:
        """Name of the variable scope."""
        if self._scope is None:
            raise InvalidArgumentError(f"layer {self._name!r} has no scope yet: it opens one when it is first called")
        return self._scope.name

    @property
    def dtype(self) -> DType:
        """Dtype of variables."""
        return self._dtype

    @property
    def graph(self) -> Graph:
        """The current graph."""
        return get_default_graph()

    @property
    def input(self) -> Any:
        """The inputs of the only call."""
        return self._only_call()[0]

    @property
    def output(self) -> Any:
        """The outputs of the only call."""
        return self._only_call()[1]

    @property
    def input_shape(self) -> Any:
        """Static shape of the inputs of the only call."""
        return nest.map_structure(lambda tensor: tensor.shape, self.input)

    @property
    def output_shape(self) -> Any:
        """Static shape of the outputs of the only call."""
        return nest.map_structure(lambda tensor: tensor.shape, self.output)

    def _only_call(self) -> tuple[Any, Any]:
        if len(self._recorded_calls) != 1:
            raise InvalidArgumentError(
                f"layer {self.name!r} was called {len(self._recorded_calls)} times, expected once"
            )
        return self._recorded_calls[0]


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


def snake_case(name: str) -> str:
    """``max_pooling2d`` for ``MaxPooling2D``."""
    name = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
    return name if not name.startswith("_") else f"private{name}"


def _unique_layer_name(base: str, first: int) -> str:
    counts: dict[str, int] = get_default_graph().extra("layer_names", dict)
    counts[base] = counts.get(base, 0) + 1
    number = counts[base] - 1 + first
    return f"{base}_{number}" if number else base


def _as_tensor(value: TensorLike) -> Any:
    return convert_to_tensor(value) if not hasattr(value, "dense_shape") else value


def _parts(variables: Iterable[Any]) -> list[Any]:
    """Variables, partitioned ones as their parts."""
    return [part for variable in variables for part in (variable if hasattr(variable, "as_tensor") else [variable])]


def _refuse_in_keras_style(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is {value!r}: a layer in Keras's style has variables of its own, in no scope")


@contextmanager
def _nothing() -> Iterator[None]:
    yield
