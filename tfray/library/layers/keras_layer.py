"""What every layer is, those of ``tf.layers`` and of ``tf.keras.layers``.

A layer makes variables when it first sees an input, and shares them from then on. It remembers the tensors that it was
called with, so that models find it between their inputs and outputs.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from tfray.errors import InvalidArgumentError
from tfray.framework import nest
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DTypeLike, as_dtype, float32
from tfray.framework.graph import Graph, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.tensor_shape import ShapeLike
from tfray.framework.type_aliases import Structure, TensorLike
from tfray.library.layers import named_activations, named_initializers
from tfray.library.layers.descriptions import NAMED, CustomObjectScope, Described, named, restored, told
from tfray.library.layers.input_spec import check_inputs, fitting_weights
from tfray.library.layers.keras_style import is_keras_style, refuse_eager_layer, refuse_in_keras_style
from tfray.library.layers.layer_history import (
    Tracker,
    depends_on,
    history,
    mask_of,
    masks_of,
    takes,
    takes_masks,
    told_of_training,
    within_call,
)
from tfray.library.layers.layer_nodes import Node, nodes_into, nodes_out_of, placeholders, sizes_of
from tfray.library.variables.dtype_policy import DtypePolicy, policy_of, reads_cast_to
from tfray.library.variables.initializers import InitializerLike
from tfray.library.variables.kept_session import get_session
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
from tfray.library.variables.variables import Variable, VariableAggregation, VariableSynchronization
from tfray.ops.arrays import array_ops
from tfray.ops.control.type_specs import TensorSpec

weight_getter: Final[ContextVar[Callable[..., Any] | None]] = ContextVar("weight_getter", default=None)
"""What gives the weights of layers of `tf.keras`, as a ``custom_getter`` gives the variables of a scope."""


class Layer(Tracker, Described):
    """A part of a model with variables of its own: ``tf.keras.layers.Layer``.

        class Scale(tf.keras.layers.Layer):
            def build(self, input_shape):
                self.factor = self.add_weight("factor", [input_shape[-1]])
                super().build(input_shape)

            def call(self, inputs):
                return inputs * self.factor

    A layer is called with its inputs. Each call opens a name scope. The first one runs `build` with the shape of the
    inputs and then `call`; further calls run `call` alone, and so use the same variables. Variables and layers that
    are attributes of a layer, or stand in lists and dictionaries that are, count as its own.

    Args:
        trainable: Whether optimizers are to change the variables.
        name: Name of the layer and of the name scopes of its calls; by default that of the class, ``max_pooling2d``,
            made unique.
        dtype: Dtype of variables; when None that of the first inputs if they are floating, else of the variable scope.
            Or a `tf.keras.mixed_precision.experimental.Policy`; the global one, if there is one, when None.
        activity_regularizer: Function from the outputs to a loss, which is divided by the size of the batch.
        input_shape: Shape of one example, for the first layer of a `Sequential` model.
        batch_input_shape: The same with the batch in front.
        input_dim: The same for examples that are vectors.
        batch_size: Number of examples, with `input_shape`.
        weights: Values of all variables, set when they are made.
        dynamic: Not taken: such a layer runs eagerly.
        autocast: Whether a layer with a policy casts floating inputs to the dtype in which it computes; it does when
            None. Inputs of layers without a policy keep their dtypes.

    Attributes:
        built: Whether `build` has run.
        trainable: As given.
        input_spec: None, or an `InputSpec`, or a list of them, against which each call checks its inputs.
        supports_masking: Whether the mask of the inputs holds for the outputs too, unless `compute_mask` says
            otherwise.
        stateful: Whether the layer goes on from one batch to the next.
    """

    supports_masking: bool = False
    stateful: bool = False
    dynamic: ClassVar[bool] = False  # no layer runs eagerly
    _parameters_end_here: ClassVar[bool] = True
    _first_number: ClassVar[int] = 0  # of the first layer without a name; 0 stands for none
    _in_collections: ClassVar[bool] = False  # whether losses and updates go to the collections of the graph
    _has_own_weights_last: ClassVar[bool] = False
    _masks_its_outputs: ClassVar[bool] = False  # the outputs already have the masks that they are to have

    def __init__(
        self,
        trainable: bool = True,
        name: str | VariableScope | None = None,
        dtype: DTypeLike | DtypePolicy | None = None,
        dynamic: bool = False,
        *,
        _scope: str | VariableScope | None = None,
        _reuse: Reuse | None = None,
        activity_regularizer: Callable[[Tensor], Tensor | None] | str | None = None,
        input_shape: Sequence[int | None] | None = None,
        batch_input_shape: Sequence[int | None] | None = None,
        input_dim: int | None = None,
        batch_size: int | None = None,
        weights: Sequence[TensorLike] | None = None,
        autocast: bool | None = None,
    ) -> None:
        refuse_eager_layer(type(self), dynamic)
        self._trainable = trainable
        self.built = False
        self.input_spec: Any = None
        self._dtype_policy, self._autocast = policy_of(dtype), autocast is not False
        of_variables: Any = dtype if self._dtype_policy is None else self._dtype_policy.variable_dtype
        self._dtype = as_dtype(get_variable_scope().dtype if of_variables is None else of_variables)
        self._takes_dtype_of_inputs = of_variables is None
        self._reuse = _reuse
        self._activity_regularizer: Any = named(activity_regularizer, "regularizer")
        input_shape = input_shape if input_dim is None else (input_dim,)
        self.batch_input_shape = (batch_size, *input_shape) if input_shape is not None else batch_input_shape
        self.__first_weights = weights
        base = name.name if isinstance(name, VariableScope) else name
        self._base_name = base or snake_case(type(self).__name__)
        self._name = base or unique_layer_name(self._base_name, self._first_number)
        self._scope: VariableScope | None = None
        # TensorFlow's names: layers of programs may add to these lists.
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._losses: list[Any] = []
        self._updates: list[Any] = []
        self._metric_records: list[tuple[str, Any, Tensor]] = []
        self._recorded_calls: list[tuple[Any, Any]] = []
        self._owns_variables = is_keras_style() or not self._in_collections
        if is_keras_style():
            refuse_in_keras_style(scope=_scope, reuse=_reuse)
        if _scope:
            with variable_scope(_scope) as scope:
                self._scope = scope

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; variables among the values become weights of the layer."""
        super().__setattr__(name, value)
        for variable in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(variable, Variable) and "_trainable_weights" in vars(self):
                known = (*self._trainable_weights, *self._non_trainable_weights)
                if not any(variable is each for each in known) and name != "_trainable_weights":
                    self._own_weights(variable.trainable).append(variable)

    if not TYPE_CHECKING:  # to type checkers, an attribute that is not defined does not exist

        def __getattr__(self, name: str) -> Any:
            """An argument with which a layer of tfray's was made, where it is no attribute itself."""
            kind = type(self)
            if hasattr(kind, name):  # a property that has raised: raise its own error
                return object.__getattribute__(self, name)
            if not name.startswith("_") and kind.__module__.startswith("tfray.") and name in kind._parameters():
                config = Described.get_config(self)
                if name in config:
                    return argument(name, config[name])
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=self)

    # -- what layers override --------------------------------------------------------------------

    def build(self, input_shape: ShapeLike) -> None:
        """Make the variables, given the static shape of the inputs (or a list of shapes)."""
        self.built = True

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Compute the outputs from the inputs."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Static shape of the outputs for inputs of that shape, or a structure of shapes for one of them.

        A layer like this one is called in a graph of its own.
        """
        args, kwargs = self._made_with
        with Graph().as_default():
            twin = type(self)(*map(_anew, args), **{name: _anew(value) for name, value in kwargs.items()})
            return nest.map_structure(lambda tensor: tensor.shape, twin(placeholders(input_shape)))

    def compute_output_signature(self, input_signature: Any) -> Any:
        """What describes the outputs for inputs that `tf.TensorSpec` describe: a structure of these."""
        shapes = self.compute_output_shape(nest.map_structure(lambda spec: spec.shape, input_signature))
        of_inputs = nest.flatten(input_signature)[0].dtype
        dtype = self._compute_dtype or (of_inputs if self._dtype is None else self._dtype)
        return nest.map_structure(lambda shape: TensorSpec(shape, dtype), shapes)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: a bool tensor that is False where they are to be left out, or None.

        Args:
            inputs: The inputs.
            mask: Their mask, or a structure of masks like them.

        Raises:
            TypeError: There is a mask, and the layer does not support masking.
        """
        if not self.supports_masking and any(each is not None for each in nest.flatten(mask)):
            raise TypeError(f"Layer {self.name} does not support masking, but was passed an input_mask: {mask}")
        return mask if self.supports_masking else None

    # -- calling ---------------------------------------------------------------------------------

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs; arguments besides the inputs go to `call`. The call is remembered.

        Masks of the inputs go to `call`, if it takes a ``mask``.
        """
        scope = kwargs.pop("scope", None)
        names = inspect.signature(self.call).parameters
        given = dict(zip(list(names)[1:], args, strict=False)) | kwargs
        if not takes("training", names):  # layers around it need not know
            kwargs.pop("training", None)
        mask, passed = given.get("mask"), self._training_passed(names, given)
        if mask is None:
            mask = masks_of(inputs)
            if mask is not None and "mask" not in given and takes_masks(names, self.call):
                passed["mask"] = mask
        tensors = nest.map_structure(_as_tensor, inputs)
        with within_call(given.get("training", passed.get("training"))):
            outputs = self._outputs_of(tensors, scope, args, kwargs | passed)
        known, own = history(), set(map(id, nest.flatten(inputs)))
        outputs = nest.map_structure(
            # A model tells the outputs of a layer from its inputs. Outside of models they may be the same.
            lambda each: array_ops.identity(each) if id(each) in own and self._within_models(each) else each,
            outputs,
        )
        for output in nest.flatten(outputs):
            if id(output) not in own and output.__hash__:  # a program's own values may have none
                known[output] = (self, inputs, given)  # not layers within this one, which have made it before
        self._recorded_calls.append((tensors, outputs))
        self.__mask_outputs(inputs, outputs, mask)
        if self.__first_weights is not None:
            values, self.__first_weights = self.__first_weights, None
            self.set_weights(values)
        return outputs

    def _build_in_call(self, input_shape: Any) -> None:
        self.build(input_shape)

    @staticmethod
    def _training_passed(names: Mapping[str, inspect.Parameter], given: Mapping[str, object]) -> dict[str, Any]:
        """What `call` is told of training without a word of its caller: what a layer around was, or a fixed phase."""
        if "training" not in names or given.get("training") is not None:
            return {}
        value = told_of_training()
        if value is None:
            phase = get_default_graph().extra("keras_learning_phase", dict).get("phase")
            value = phase if isinstance(phase, bool) else None
        is_needed = names["training"].default is inspect.Parameter.empty and "training" not in given
        return {"training": value} if value is not None or is_needed else {}

    def _within_models(self, tensor: Tensor) -> bool:
        return not self._in_collections or tensor in history()

    def _outputs_of(
        self, inputs: Structure, scope: ScopeLike | None, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Any:
        if self._dtype_policy is not None:
            self._dtype_policy, inputs = self._dtype_policy.of_call(inputs, self._autocast)
        if self._takes_dtype_of_inputs and not self.built:
            self._dtype = next((t.dtype for t in nest.flatten(inputs) if t.dtype.is_floating), self._dtype)
            self._takes_dtype_of_inputs = False
        with self._entered(scope):
            if not self.built:
                check_inputs(self.input_spec, nest.flatten(inputs), self.name)
                self._build_in_call(nest.map_structure(lambda tensor: tensor.shape, inputs))
                self.built = True
            check_inputs(self.input_spec, nest.flatten(inputs), self.name)
            with reads_cast_to(self._compute_dtype):
                outputs = self.call(inputs, *args, **kwargs)
            self._regularize_activity(outputs)
        return outputs

    @property
    def _compute_dtype(self) -> str | None:
        """The dtype that a policy says; None without any."""
        return None if self._dtype_policy is None else self._dtype_policy.compute_dtype

    def __mask_outputs(self, inputs: object, outputs: object, mask: object) -> None:
        flat = [output for output in nest.flatten(outputs) if isinstance(output, Tensor)]
        if self._masks_its_outputs or (flat and all(mask_of(output) is not None for output in flat)):
            return
        masks = None
        if self.supports_masking or type(self).compute_mask is not Layer.compute_mask:
            masks = self.compute_mask(inputs, mask)
        for output, own in zip(flat, [None] * len(flat) if masks is None else nest.flatten(masks), strict=False):
            output._keras_mask = own

    @contextmanager
    def _entered(self, scope: ScopeLike | None) -> Iterator[None]:
        """The scopes in which a call builds its operations and variables."""
        graph = get_default_graph()
        if self._owns_variables:
            refuse_in_keras_style(scope=scope)
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
        name: str | None = None,
        shape: ShapeLike = None,
        dtype: DTypeLike | None = None,
        initializer: InitializerLike | None = None,
        regularizer: RegularizerFunction | None = None,
        trainable: bool | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        partitioner: Partitioner | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        experimental_autocast: bool | None = None,
    ) -> Any:
        """Make a variable of the layer, or find it where the layer shares those of another.

        Args:
            name: Name within the scope of the layer; ``variable`` when None.
            shape: Shape; a scalar when None.
            dtype: Dtype; that of the layer when None.
            initializer: As for `tf.get_variable`, or the name of one in `tf.keras.initializers`.
            regularizer: Likewise; the loss belongs to the layer too.
            trainable: Whether optimizers are to change it; by default as the layer, and not where `synchronization` is
                ``ON_READ``.
            constraint: As for `tf.get_variable`, like the arguments that follow.
            partitioner: What cuts the variable into parts.
            use_resource: Accepted for TensorFlow 1's sake.
            synchronization: When copies are made equal.
            aggregation: How updates of copies are put together.
            experimental_autocast: Whether calls read it as the dtype in which the layer computes; they do when None.

        Returns:
            The variable.

        Raises:
            ValueError: `trainable` is True and `synchronization` is ``ON_READ``.
        """
        name = name or "variable"
        if synchronization is VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable "
                    f"variables. Variable {name!r} has trainable=True"
                )
            trainable = False
        graph = get_default_graph()
        before = len(graph.get_collection_ref(GraphKeys.REGULARIZATION_LOSSES))
        scope = graph.get_name_scope() if self._owns_variables else self.first_scope(None).name
        full_name = f"{scope}/{name}".lstrip("/")
        if regularizer is not None or not self._collects:
            regularizer = partial(self._loss_of, named(regularizer, "regularizer"), full_name)
        settings: dict[str, Any] = {
            "shape": () if shape is None else shape,
            "dtype": dtype or self._dtype or (float32 if self._owns_variables else None),
            "initializer": named_initializers.get(initializer),
            "regularizer": regularizer,
            "trainable": self.trainable and (trainable is None or trainable),
            "partitioner": partitioner,
            "constraint": named(constraint, "constraint"),
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        if self._owns_variables:
            with graph.name_scope(None):
                variable = VariableStore().get(VariableRequest(full_name, **settings), weight_getter.get())
        else:
            inside, own = get_variable_scope().name == scope, self.first_scope(None)
            with nullcontext() if inside else variable_scope(own, reuse=self._reuse, auxiliary_name_scope=False):
                variable = get_variable(name, **settings)
        if self._dtype_policy is not None and experimental_autocast is not False and isinstance(variable, Variable):
            variable._is_cast_when_read = self._dtype_policy.should_cast_variables and variable.true_dtype.is_floating
        vars(self).setdefault("_named_weights", {})[name] = variable  # so are they called in checkpoints of objects
        self._losses += graph.get_collection_ref(GraphKeys.REGULARIZATION_LOSSES)[before:]
        is_decided = get_variable_scope().custom_getter is None  # here, even if another layer made the variable
        self._own_weights(trainable if is_decided else getattr(variable, "trainable", trainable)).append(variable)
        return variable

    @property
    def _collects(self) -> bool:
        return self._in_collections and not self._owns_variables

    def _loss_of(self, regularizer: RegularizerFunction | None, name: str, variable: Tensor) -> Tensor | None:
        with get_default_graph().name_scope(f"{name}/Regularizer/"):  # the name that the layer has for it
            loss = None if regularizer is None else regularizer(variable)
        self._losses += [] if loss is None or self._collects else [loss]
        return loss if self._collects else None

    def _own_weights(self, trainable: bool | None) -> list[Any]:  # those variables that are so, or are not
        return self._trainable_weights if trainable is None or trainable else self._non_trainable_weights

    add_variable = add_weight

    # -- layers within this one ------------------------------------------------------------------

    def _layers_within(self) -> list[Any]:
        """Layers that are attributes of this one, or stand in lists that are."""
        found: dict[Any, None] = {}
        for value in vars(self).values():
            items = value.values() if isinstance(value, dict) else value
            for item in items if isinstance(value, (list, tuple, dict)) else [value]:
                if isinstance(item, Layer):
                    found[item] = None
        return list(found)

    def __gathered(self, own: Iterable[object], attribute: str) -> list[Any]:
        inner = [each for layer in self._layers_within() for each in getattr(layer, attribute)]
        found = [*inner, *own] if self._has_own_weights_last else [*own, *inner]
        return found if attribute == "losses" else list(dict.fromkeys(found))

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that optimizers change, those of layers within this one included."""
        return self.__gathered(_parts(self._trainable_weights), "trainable_variables") if self.trainable else []

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The variables that optimizers leave alone."""
        others = _parts(self._non_trainable_weights)
        if self.trainable:
            return self.__gathered(others, "non_trainable_variables")
        return list(dict.fromkeys([*_parts(self._trainable_weights), *self.__gathered(others, "variables")]))

    @property
    def variables(self) -> list[Any]:
        """All variables, the trainable ones first."""
        return [*self.trainable_variables, *self.non_trainable_variables]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    @property
    def losses(self) -> list[Tensor]:
        """Losses of regularizers and those that `add_loss` added, those of layers within this one included."""
        made = (loss() if callable(loss) else loss for loss in self._losses)
        self._losses = [loss for loss in made if loss is not None]
        return self.__gathered(self._losses, "losses")

    @property
    def updates(self) -> list[Any]:
        """What `add_update` added, likewise; nothing of a layer that is not trainable."""
        return self.__gathered(self._updates if self.trainable else [], "updates")

    def get_losses_for(self, inputs: Structure) -> list[Tensor]:
        """Losses that depend on these inputs, or with None those that depend on none."""
        return self.__that_depend(self.losses, inputs)

    def get_updates_for(self, inputs: Structure) -> list[Any]:
        """Updates that depend on these inputs, or with None those that depend on none."""
        return self.__that_depend(self.updates, inputs)

    def _seen(self) -> list[Any]:
        """All inputs that the layer and layers within it were called with."""
        own = nest.flatten([call[0] for call in self._recorded_calls])
        return [*own, *(each for layer in self._layers_within() for each in layer._seen())]

    def __that_depend(self, things: Sequence[Tensor], inputs: Structure) -> list[Any]:
        seen = self._seen() if inputs is None else nest.flatten(inputs)
        return [each for each in things if depends_on(each, seen) == (inputs is not None)]

    def count_params(self) -> int:
        """Number of elements of all variables. Raises `InvalidArgumentError` where they are not made yet."""
        if not self.built:
            raise InvalidArgumentError(f"You tried to call `count_params` on {self.name}, but the layer isn't built")
        return sum(variable.shape.num_elements() or 0 for variable in self.variables)

    # -- losses and updates ----------------------------------------------------------------------

    def add_loss(self, losses: object, inputs: TensorLike | None = None) -> None:
        """Add losses of the layer, such as of its activations, or functions that give them. None is no loss.

        Those of ``tf.layers`` go to ``GraphKeys.REGULARIZATION_LOSSES``.
        """
        for loss in filter(lambda each: each is not None, nest.flatten(losses)):
            self._losses.append(loss)
            if self._collects and not callable(loss):
                get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_update(self, updates: object, inputs: TensorLike | None = None) -> None:
        """Add operations to run with each training step, or functions that give them.

        Those of ``tf.layers`` go to ``GraphKeys.UPDATE_OPS``, but for layers that are made in
        `tf.layers.experimental.keras_style_scope`.
        """
        for update in updates if isinstance(updates, (list, tuple)) else [updates]:
            made = update() if callable(update) else update
            self._updates.append(made)
            if self._collects:
                get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, made)

    def add_metric(self, value: Tensor, aggregation: str | None = None, name: str | None = None) -> None:
        """Add a metric, which models with this layer show.

        Args:
            value: Its value for a batch, or what a metric of `tf.keras.metrics` has given.
            aggregation: ``mean``: the mean over all batches; None for the result of a metric.
            name: Its name; that of the metric when None.

        Raises:
            ValueError: There is no name, or another aggregation.
        """
        if aggregation not in (None, "mean"):
            raise ValueError(
                "We currently support only `mean` sample-wise metric aggregation. You provided "
                f"aggregation=`{aggregation}`"
            )
        metric = get_default_graph().extra("keras_metric_results", dict).get(value)
        if metric is None and name is None:
            raise ValueError(
                "Please provide a name for your metric like `self.add_metric(tf.reduce_sum(inputs), "
                "name='mean_activation', aggregation='mean')`"
            )
        name = name or str(metric.name)
        if metric is None:
            known = next((each for each in self._metric_records if each[0] == name), None)
            metric = importlib.import_module("tfray.keras.metrics").Mean(name=name) if known is None else known[1]
            value = metric(value)
        self._metric_records.append((name, metric, value))

    def _added_metrics(self) -> list[tuple[str, Any, Tensor]]:
        """Name, metric and result of what `add_metric` has added, here and in layers within this one."""
        inner = (each for layer in self._layers_within() for each in layer._added_metrics())
        return list(dict.fromkeys([*self._metric_records, *inner]))

    @property
    def metrics(self) -> list[Any]:
        """The metrics that `add_metric` has added."""
        return list(dict.fromkeys(metric for _, metric, _ in self._added_metrics()))

    # -- what it is ------------------------------------------------------------------------------

    @property
    def trainable(self) -> bool:
        """Whether optimizers change the variables. When set, it is set for layers within this one too."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = value
        for layer in self._layers_within():
            layer.trainable = value

    @property
    def activity_regularizer(self) -> Any:
        """The function from the outputs to a loss."""
        return self._activity_regularizer

    @activity_regularizer.setter
    def activity_regularizer(self, regularizer: Any) -> None:
        self._activity_regularizer = named(regularizer, "regularizer")

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
    def dtype(self) -> Any:
        """Dtype of variables; None as long as inputs may still decide on it."""
        return None if self._takes_dtype_of_inputs and not (self.built or self._trainable_weights) else self._dtype

    @property
    def graph(self) -> Graph:
        """The current graph."""
        return get_default_graph()

    @property
    def input(self) -> Any:
        """The inputs of the first call."""
        return self._first_call()[0]

    @property
    def output(self) -> Any:
        """The outputs of the first call."""
        return self._first_call()[1]

    @property
    def inbound_nodes(self) -> list[Node]:
        """The calls of the layer."""
        return nodes_into(self)

    @property
    def outbound_nodes(self) -> list[Node]:
        """The calls of other layers with what this one has made."""
        return nodes_out_of(self)

    _inbound_nodes = inbound_nodes
    _outbound_nodes = outbound_nodes

    @property
    def input_shape(self) -> Any:
        """Static shape of the inputs of all calls, a tuple."""
        return self._shapes_of_calls(0)

    @property
    def output_shape(self) -> Any:
        """Static shape of the outputs of all calls, a tuple."""
        return self._shapes_of_calls(1)

    @property
    def input_mask(self) -> Any:
        """The mask of the inputs of the first call."""
        return nest.map_structure(mask_of, self.input)

    @property
    def output_mask(self) -> Any:
        """The mask of the outputs of the first call."""
        return nest.map_structure(mask_of, self.output)

    def get_input_at(self, node_index: int) -> Any:
        """The inputs of a call; so do the methods that follow.

        Args:
            node_index: Number of the call, from 0.

        Raises:
            ValueError: There was none.
        """
        return self._call_at(node_index)[0]

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of a call."""
        return self._call_at(node_index)[1]

    def get_input_shape_at(self, node_index: int) -> Any:
        """Static shape of the inputs of a call, a tuple."""
        return nest.map_structure(sizes_of, self.get_input_at(node_index))

    def get_output_shape_at(self, node_index: int) -> Any:
        """Static shape of the outputs of a call, a tuple."""
        return nest.map_structure(sizes_of, self.get_output_at(node_index))

    def get_input_mask_at(self, node_index: int) -> Any:
        """The mask of the inputs of a call."""
        return nest.map_structure(mask_of, self.get_input_at(node_index))

    def get_output_mask_at(self, node_index: int) -> Any:
        """The mask of the outputs of a call."""
        return nest.map_structure(mask_of, self.get_output_at(node_index))

    def _call_at(self, number: int) -> tuple[Any, Any]:
        if not self._recorded_calls:
            raise RuntimeError(f"The layer {self.name} has never been called and thus has no calls to ask about")
        if not 0 <= number < len(self._recorded_calls):
            raise ValueError(
                f"Asked for call {number} of layer {self.name}, but it was called {len(self._recorded_calls)} times"
            )
        return self._recorded_calls[number]

    def _first_call(self) -> tuple[Any, Any]:
        if not self._recorded_calls:
            raise AttributeError(f"Layer {self.name} is not connected: it was called 0 times")
        return self._recorded_calls[0]

    def _shapes_of_calls(self, part: int) -> Any:
        shapes = [nest.map_structure(sizes_of, call[part]) for call in self._recorded_calls]
        if any(shape != shapes[0] for shape in shapes):
            raise AttributeError(
                f"Layer {self.name} was called with different shapes: use `get_input_shape_at(index)` and "
                "`get_output_shape_at(index)`"
            )
        return nest.map_structure(sizes_of, self._first_call()[part])

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, with weights of its own."""
        own = {"name": self.name, "trainable": self.trainable}
        given = {key: value for key, value in super().get_config().items() if key != "weights" and key[0] != "_"}
        for key in ("input_shape", "input_dim", "batch_size", "dynamic", "autocast"):
            if key in given and key not in self._parameters():
                del given[key]
        if self.batch_input_shape is not None and self._takes("batch_input_shape"):
            own["batch_input_shape"] = tuple(self.batch_input_shape)
        if type(self).__module__.startswith("tfray."):  # as it is now: programs set the attributes of layers
            for key, value in given.items():
                now = argument(key, value) if isinstance(value, str) else value
                given[key] = told(key, vars(self).get(key, now))
        own["dtype"] = told("dtype", self.dtype)
        return {**given, **{key: value for key, value in own.items() if self._takes(key)}}

    @classmethod
    def _known_arguments(cls) -> set[str]:
        return {*super()._known_arguments(), *inspect.signature(Layer.__init__).parameters}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, object] | None = None) -> Self:
        """What `get_config` describes, made anew; layers within it, such as cells, are made anew too."""
        with CustomObjectScope(custom_objects or {}):
            return super().from_config({name: _anew(value) for name, value in config.items()})

    def get_weights(self) -> list[Any]:
        """Values of all variables, the trainable ones first."""
        variables = list(self.variables)
        values: list[Any] = get_session().run(variables) if variables else []
        return values

    def set_weights(self, weights: Sequence[TensorLike]) -> None:
        """Set all variables, in the order of `get_weights`. Raises `ValueError` where arrays do not fit them."""
        for variable, value in fitting_weights(self.variables, weights, self.name):
            variable.load(value, get_session())


def argument(name: str, value: object) -> Any:
    """An argument of a layer; what it stands for, if it is the name of an activation, an initializer and the like."""
    kind = name.rpartition("_")[2]
    return named_activations.get(value) if kind == "activation" else named(value, kind) if kind in NAMED else value


def _anew(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_anew(each) for each in value)
    if isinstance(value, Mapping) and value.keys() == {"class_name", "config"}:
        return restored(value)
    return type(value).from_config(value.get_config()) if isinstance(value, Layer) else value


def snake_case(name: str) -> str:
    """``max_pooling2d`` for ``MaxPooling2D``."""
    name = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    name = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
    return name if not name.startswith("_") else f"private{name}"


def unique_layer_name(base: str, first: int = 0) -> str:
    """A name that no other layer or metric of the graph has: ``base``, then ``base_1``, where `first` is 0."""
    counts: dict[str, int] = get_default_graph().extra("layer_names", dict)
    counts[base] = counts.get(base, 0) + 1
    number = counts[base] - 1 + first
    return f"{base}_{number}" if number else base


def _as_tensor(value: TensorLike) -> Any:
    return convert_to_tensor(value) if not hasattr(value, "dense_shape") else value


def _parts(variables: Iterable[Any]) -> list[Any]:
    """Variables, partitioned ones as their parts."""
    return [part for variable in variables for part in (variable if hasattr(variable, "as_tensor") else [variable])]
