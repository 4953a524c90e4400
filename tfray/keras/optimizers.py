"""Optimizers of Keras models, whose learning rate can be set while they train."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Self

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Operation, Tensor, get_default_graph
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.scopes import NoStrategy, current_mode, replica_mode
from tfray.framework.tensor_shape import ShapeLike
from tfray.gradients import gradients as gradients_of
from tfray.keras import learning_rate_schedules as schedules
from tfray.keras import optimizer_rules
from tfray.keras.backend import get_session, get_value, set_value
from tfray.keras.settings import epsilon as small_number
from tfray.library.layers import named_initializers
from tfray.library.layers.descriptions import Described, deserializer, named_object, restored, told
from tfray.library.layers.descriptions import serialize as serialize
from tfray.library.platform import logging
from tfray.library.variables.clip import clip_by_norm
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.ops.state import sparse_state_ops
from tfray.training.optimizers.ftrl import FtrlOptimizer
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.optimizers.optimizer import Optimizer as TrainOptimizer
from tfray.training.optimizers.optimizer import dense_shape, summed_gradients

# fmt: off
__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "Optimizer", "RMSprop", "deserialize", "get",
    "schedules", "serialize",
]
# fmt: on

_ALLOWED: Final = ("clipnorm", "clipvalue", "decay", "lr")
_UPDATES: Final = ("_create_slots", "_prepare", "_prepare_local", "_resource_apply_dense", "_resource_apply_sparse")

ApplyState = dict[tuple[str, Any], dict[str, Any]]
"""Tensors that the updates of variables share, by the device and dtype of the variables, and by name."""


class Optimizer(Described):
    """What the optimizers share. Those of this module give `_rule`. One that a program derives overrides

    - `_create_slots`, to make slots by `add_slot`;
    - `_resource_apply_dense` and `_resource_apply_sparse`, to update one variable. In a class derived from another
      optimizer, such as `Adam`, they may call the same method of that one;
    - `_prepare_local`, to make tensors that the updates share. Updates that take an ``apply_state`` are given them.

    Hyperparameters are attributes: variables, made when they are first asked for, unless they were given as tensors,
    functions or schedules. So training goes on with what they are set to.

    Args:
        name: Name.
        learning_rate: The learning rate: a number, a tensor, a function that gives one of these, or one of
            `tf.keras.optimizers.schedules`.
        **kwargs: ``clipnorm``, the largest norm of each gradient; ``clipvalue``, the largest absolute value of their
            elements; ``decay``, with which the rate is divided by ``1 + decay * iterations``; ``lr``, as
            `learning_rate`.

    Attributes:
        iterations: The variable that counts steps.
        weights: The optimizer's variables, once it has made a step: `iterations`, and those that hold how far it has
            come.

    Raises:
        TypeError: There is another argument.
        ValueError: One is negative.
    """

    _use_locking: Final = True

    def __init__(self, name: str, learning_rate: Any = 0.01, **kwargs: Any) -> None:
        for key, value in kwargs.items():
            if key not in _ALLOWED:
                raise TypeError(f"Unexpected keyword argument passed to optimizer: {key}")
            if isinstance(value, (int, float)) and value < 0:
                raise ValueError(f"Expected {key} >= 0, received: {value}")
        self._name = name
        self._initial_decay = kwargs.get("decay") or 0.0
        self._hyper: dict[str, Any] = {}
        for key in kwargs.keys() & {"clipnorm", "clipvalue"}:
            setattr(self, key, kwargs[key])
        self._begin()
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)

    @classmethod
    def _known_arguments(cls) -> set[str]:
        return {*super()._known_arguments(), *_ALLOWED}

    def _begin(self) -> None:
        """Forget the variables, which belong to one graph."""
        self._scope: str | None = None  # of the names of variables: that of the first step, once there is one
        self._hyper_variables: dict[str, Any] = {}
        self._iterations: Any = None
        self._updater: TrainOptimizer | None = None
        self._own_weights: list[Any] = []
        self._kept: Sequence[Any] | None = None

    def fresh(self) -> Optimizer:
        """One like this that has made no step."""
        made = type(self).from_config(self.get_config())
        return made

    # -- settings --------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """A hyperparameter: a variable, unless it is a tensor, a function, whose value this is, or a schedule."""
        name = "learning_rate" if name == "lr" else name
        if name in vars(self).get("_hyper", ()):
            return self._get_hyper(name)
        raise AttributeError(f"optimizer {type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        name = "learning_rate" if name == "lr" else name
        if name in vars(self).get("_hyper", ()):
            self._set_hyper(name, value)
        else:
            super().__setattr__(name, value)

    @property
    def iterations(self) -> Any:
        """The variable that counts steps, int64."""
        if self._iterations is None or self._iterations.graph is not get_default_graph().root:
            self._iterations = self._variable(0, "iter", "int64")
        return self._iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        if self._iterations is not None:
            raise RuntimeError(
                "Cannot set `iterations` to a new Variable after the Optimizer weights have been created"
            )
        self._iterations = variable

    def _variable(self, value: Any, name: str, dtype: DTypeLike = "float32") -> Any:
        root = get_default_graph().root
        with root.as_default(), root.control_dependencies(None), root.name_scope(self._scope):
            return Variable(value, trainable=False, name=name, dtype=dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal optimizer, with the hyperparameters of now."""
        known = {"learning_rate", "decay", *self._known_arguments()}  # others are the program's to tell
        of_now = {name: self._serialize_hyperparameter(name) for name in self._hyper if name in known}
        config = {**super().get_config(), **of_now}
        config.pop("lr", None)
        return {**config, "name": self._name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """What `get_config` describes, made anew; a schedule is made of its class and configuration."""
        rates = {name: restored(config[name], custom_objects) for name in ("lr", "learning_rate") if name in config}
        return super().from_config({**config, **rates}, custom_objects)

    # -- hyperparameters -------------------------------------------------------------------------

    def _set_hyper(self, name: str, value: Any) -> None:
        """Set a hyperparameter: a number, a tensor or a function that gives one; a schedule for the learning rate."""
        variable = self._hyper_variables.get(name)
        if variable is not None and is_number(value):
            set_value(variable, value)
        elif variable is not None:
            del self._hyper_variables[name]
        self._hyper[name] = value

    def _get_hyper(self, name: str, dtype: DTypeLike | None = None) -> Any:
        """A hyperparameter, as a tensor if there is a dtype. A schedule is returned as it is."""
        value = self._hyper[name]
        if hasattr(value, "get_config"):
            return value
        if callable(value):
            value = value()
        elif is_number(value):
            value = self._hyper_variable(name)
        return value if dtype is None else array_ops.cast(value.value() if hasattr(value, "handle") else value, dtype)

    def _hyper_variable(self, name: str) -> Any:
        """The variable of a hyperparameter in the current graph."""
        found = self._hyper_variables.get(name)
        if found is None or found.graph is not get_default_graph().root:
            found = self._hyper_variables[name] = self._variable(float(self._hyper[name]), name)
        return found

    def _serialize_hyperparameter(self, name: str) -> Any:
        """A hyperparameter as plain data, for `get_config`; a schedule as its class and configuration."""
        value = self._hyper[name]
        if name in self._hyper_variables:
            variable = self._hyper_variables[name]
            with variable.graph.as_default():
                return float(get_session().run(variable))
        if hasattr(value, "get_config"):
            return told(name, value)
        value = value() if callable(value) else value
        return get_value(value) if hasattr(value, "graph") else value

    @property
    def _checkpoint_dependencies(self) -> list[tuple[str, Any]]:
        """The variables that are no slots, by the names that TensorFlow's checkpoints have for them."""
        iterations = [] if self._iterations is None else [("iter", self._iterations)]
        own = [(variable.op.name.rpartition("/")[2], variable) for variable in self._own_weights]
        others = [] if self._updater is None else self._updater._checkpoint_dependencies
        return [*iterations, *sorted(self._hyper_variables.items()), *own, *others]

    def _decayed_lr(self, var_dtype: DTypeLike) -> Tensor:
        """The learning rate of a step, for variables of that dtype."""
        return array_ops.cast(self._decayed(), var_dtype)

    # -- variables -------------------------------------------------------------------------------

    @property
    def weights(self) -> list[Any]:
        """The variables, `iterations` first."""
        first = [*([] if self._iterations is None else [self._iterations]), *self._own_weights]
        if self._updater is None:
            return first
        # As TensorFlow has them: in the order in which they were made.
        return [*first, *sorted(self._updater.variables(), key=lambda variable: variable.op.id)]

    def variables(self) -> list[Any]:
        """The same."""
        return self.weights

    def get_slot_names(self) -> list[str]:
        """Names of the variables that belong to one that is trained."""
        return [] if self._updater is None else self._updater.get_slot_names()

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """The variable of that name that belongs to `var`, or None."""
        return None if self._updater is None else self._updater.get_slot(var, slot_name)

    def add_slot(self, var: Any, slot_name: str, initializer: Any = "zeros") -> Any:
        """Make the slot of that name of a variable, in its shape, unless there is one. Call it in `_create_slots`.

        Args:
            var: The variable.
            slot_name: The name.
            initializer: An initializer, the name of one, or the first value.

        Returns:
            The slot, a variable.
        """
        updater = self._updater_of_now()
        if not isinstance(initializer, str) and not callable(initializer):
            return updater._get_or_make_slot(var, initializer, slot_name, slot_name)
        made = named_initializers.get(initializer)
        return updater._get_or_make_slot_with_initializer(var, made, var.shape, var.dtype, slot_name, slot_name)

    def add_weight(
        self,
        name: str,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        initializer: Any = "zeros",
        trainable: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
    ) -> Any:
        """Make a variable of the optimizer that belongs to none that is trained.

        Args:
            name: Its name.
            shape: Its shape.
            dtype: Its dtype; float32 when None.
            initializer: An initializer, or the name of one.
            trainable: Accepted for TensorFlow 1's sake, like what follows: no optimizer is to change it.
            synchronization: Likewise.
            aggregation: Likewise.
        """
        dtype = dtype or "float32"
        made = self._variable(named_initializers.get(initializer)(shape, dtype), name, dtype)
        self._own_weights.append(made)
        return made

    def get_weights(self) -> list[Any]:
        """Values of `weights`."""
        values: list[Any] = get_session().run(self.weights)
        return values

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the optimizer's variables, in the order of `get_weights`.

        Raises:
            ValueError: There are others in number or shape.
        """
        own = self.weights
        if len(own) != len(weights):
            raise ValueError(
                f"You called `set_weights(weights)` on optimizer {self._name} with a weight list of length "
                f"{len(weights)}, but the optimizer was expecting {len(own)} weights. Provided weights: "
                f"{str(weights)[:50]}..."
            )
        for variable, value in zip(own, weights, strict=True):
            variable.load(value, get_session())

    def restore_weights(self, weights: Sequence[Any]) -> None:
        """As `set_weights`, but as soon as the variables are there: `iterations` at once, others with the first step.

        Values that do not fit are left out, with a warning.
        """
        if self._updater is None and weights:
            self.iterations.load(weights[0], get_session())
            self._kept = weights
        else:
            self.set_weights(weights)

    def _set_kept(self) -> None:
        kept, self._kept = self._kept, None
        if kept is None:
            return
        own = [tuple(variable.shape.as_list()) for variable in self.weights]
        if own != [np.shape(value) for value in kept]:
            logging.warning(
                "the variables of optimizer %r do not fit: it begins anew, but for the count of its steps", self._name
            )
        else:
            self.set_weights(kept)

    # -- steps -----------------------------------------------------------------------------------

    def get_gradients(self, loss: Tensor, params: Sequence[Any]) -> list[Any]:
        """The gradients of a loss, clipped.

        Raises:
            ValueError: The loss does not depend on one of the variables.
        """
        found = gradients_of(loss, list(params))
        for gradient, param in zip(found, params, strict=True):
            if gradient is None:
                raise ValueError(
                    f"Variable {param} has `None` for gradient. Please make sure that all of your ops have a gradient "
                    "defined (i.e. are differentiable). Common ops without gradient: K.argmax, K.round, K.eval."
                )
        return [self._clipped(gradient) for gradient in found]

    def get_updates(self, loss: Tensor, params: Sequence[Any]) -> list[Operation]:
        """A list of the operation that makes one step. Models train by it."""
        return [self.minimize(loss, params)]

    def minimize(self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None) -> Operation:
        """The operation that makes one step.

        Args:
            loss: The loss: a tensor, or a function that gives it.
            var_list: The variables, or a function that gives them.
            grad_loss: The gradient of the loss; ones when None.
            name: Name of the operation.
        """
        return self.apply_gradients(self._compute_gradients(loss, var_list=var_list, grad_loss=grad_loss), name)

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None) -> list[tuple[Any, Any]]:
        """Pairs of a gradient, clipped, or None, and a variable. Arguments as for `minimize`."""
        loss = loss() if callable(loss) else loss
        variables = list(var_list() if callable(var_list) else var_list)
        found = gradients_of(loss, variables, grad_ys=None if grad_loss is None else [grad_loss])
        return [(self._clipped(gradient), variable) for gradient, variable in zip(found, variables, strict=True)]

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None = None) -> Operation:
        """The operation that changes variables by their gradients, and counts the step.

        Args:
            grads_and_vars: Pairs of a gradient and a variable; those without gradient are left out.
            name: Name of the operation.

        Raises:
            ValueError: No variable has a gradient.
        """
        mode = current_mode()
        if mode is not None and mode.replica is not None:
            made: Operation = mode.replica.merge_call(self._distributed_apply, (list(grads_and_vars), name))
            return made
        with replica_mode(NoStrategy, None):  # a whole batch's gradients, whatever strategy there is
            return self._apply_once(grads_and_vars, name)

    def _distributed_apply(self, strategy: Any, grads_and_vars: list[tuple[Any, Any]], name: str | None) -> Operation:
        """`apply_gradients` across the replicas of a strategy: their gradients are added up."""
        with replica_mode(NoStrategy, None):
            return self._apply_once(summed_gradients(strategy, grads_and_vars), name)

    def _apply_once(self, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None) -> Operation:
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        present = [pair for pair in pairs if pair[0] is not None]
        if not present:
            raise ValueError(f"No gradients provided for any variable: {[variable.name for _, variable in pairs]}.")
        with self._named() as self._scope:
            self._begin_step()
            optimizer = self._optimizer_of_step()
            for each in (optimizer, getattr(optimizer, "rule", None) or optimizer):
                if self._updater is not None:  # its variables are those of this one
                    each._slots, each._non_slots = self._updater._slots, self._updater._non_slots
                each._variables_scope = self._scope
            self._updater = optimizer
            made = optimizer.apply_gradients(present, self.iterations, name)
        self._set_kept()
        return made

    def _named(self) -> AbstractContextManager[str | None]:
        """The name scope of a step and of the variables that it makes."""
        return get_default_graph().name_scope(self._name)

    def _begin_step(self) -> None:
        """Make the variables that are no slots, in TensorFlow's order."""
        _ = self.iterations
        self._create_hypers()

    def _optimizer_of_step(self) -> TrainOptimizer:
        rule = self._rule(self._decayed(), self.iterations)
        overrides = any(getattr(type(self), name) is not getattr(Optimizer, name) for name in _UPDATES)
        return optimizer_rules.ByMethods(self, rule, self._name) if rule is None or overrides else rule

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer | None:
        """What changes the variables, for the rate of a step and the variable that counts them.

        None where the other methods do it.
        """
        return None

    def _decayed(self) -> Any:
        rate = self._get_hyper("learning_rate", "float32")
        if isinstance(rate, schedules.LearningRateSchedule):
            rate = rate(self.iterations.value())
        if not self._initial_decay:
            return rate
        return rate / (1.0 + self._get_hyper("decay", "float32") * array_ops.to_float(self.iterations))

    def _clipped(self, gradient: Any) -> Any:
        if gradient is None:
            return None
        if (norm := getattr(self, "clipnorm", None)) is not None:
            gradient = clip_by_norm(gradient, norm)
        if (value := getattr(self, "clipvalue", None)) is not None:
            limit = array_ops.cast(value, gradient.dtype)
            gradient = math_ops.maximum(math_ops.minimum(gradient, limit), -limit)
        return gradient

    # -- updates ---------------------------------------------------------------------------------

    def _create_hypers(self) -> None:
        """Make the variables of hyperparameters."""
        for name in sorted(name for name, value in self._hyper.items() if is_number(value)):
            self._hyper_variable(name)

    def _create_slots(self, var_list: list[Any]) -> None:
        """Make the slots of variables."""
        if (rule := self._rule_behind()) is not None:
            rule._create_slots(var_list)

    def _prepare(self, var_list: list[Any]) -> ApplyState:
        """Make the tensors that the updates of variables share."""
        if (rule := self._rule_behind()) is not None:
            rule._prepare()
        state: ApplyState = {}
        for device, dtype in dict.fromkeys((var.device, var.dtype.base_dtype) for var in var_list):
            state[device, dtype] = {}
            with get_default_graph().device(device or None):
                self._prepare_local(device, dtype, state)
        return state

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: ApplyState) -> None:
        """Make those for variables of a device and dtype: ``lr_t``, the learning rate."""
        apply_state[var_device, var_dtype]["lr_t"] = array_ops.identity(self._decayed_lr(var_dtype))

    def _fallback_apply_state(self, var_device: str, var_dtype: Any) -> dict[str, Any]:
        """The same, for an update that was given none."""
        state: ApplyState = {(var_device, var_dtype): {}}
        self._prepare_local(var_device, var_dtype, state)
        return state[var_device, var_dtype]

    def _resource_apply_dense(self, grad: Tensor, handle: Any, apply_state: ApplyState | None = None) -> Any:
        """The operation that updates a variable by a gradient of its shape."""
        if (rule := self._rule_behind()) is not None:
            return rule._resource_apply_dense(grad, handle)
        raise NotImplementedError(f"{type(self).__name__} does not define _resource_apply_dense")

    def _resource_apply_sparse(
        self, grad: Tensor, handle: Any, indices: Tensor, apply_state: ApplyState | None = None
    ) -> Any:
        """The operation that updates the rows `indices` of a variable, which are distinct, by those of `grad`."""
        if (rule := self._rule_behind()) is not None:
            return rule._apply_sparse(IndexedSlices(grad, indices, dense_shape(handle)), handle)
        raise NotImplementedError(
            f"{type(self).__name__} does not define _resource_apply_sparse, and the gradient of {handle.name} is "
            "sparse: convert it with tf.convert_to_tensor"
        )

    def _resource_scatter_add(self, x: Any, i: Tensor, v: Tensor) -> Tensor:
        """Add `v` to the rows `i` of the variable `x`. Returns its new value."""
        with get_default_graph().control_dependencies([sparse_state_ops.scatter_add(x, i, v)]):
            return x.value()

    def _rule_behind(self) -> TrainOptimizer | None:
        """What updates variables where a derived class does not."""
        updater = self._updater_of_now()
        return updater.rule if isinstance(updater, optimizer_rules.ByMethods) else updater

    def _updater_of_now(self) -> TrainOptimizer:
        """What changes variables. It is made here for an optimizer within another one, which calls its methods."""
        is_of_graph = self._iterations is not None and self._iterations.graph is get_default_graph().root
        if self._updater is None or not is_of_graph:
            self._updater = self._optimizer_of_step()
            self._updater._variables_scope = self._scope
        return self._updater


class SGD(Optimizer):
    """Gradient descent, with momentum, which `nesterov` lets look ahead. Further arguments as for `Optimizer`."""

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, **kwargs)
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self._set_hyper("momentum", momentum)
        self._has_momentum, self.nesterov = not is_number(momentum) or momentum > 0, nesterov

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer:
        if not self._has_momentum:
            return GradientDescentOptimizer(rate)
        momentum = self._get_hyper("momentum", "float32")
        return optimizer_rules.Momentum(self._name, rate, step, momentum, self.nesterov)


class RMSprop(Optimizer):
    """RMSProp: `rho` is the decay of the mean of squares. Further arguments as for `Optimizer`."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float | None = 1e-7,
        centered: bool = False,
        name: str = "RMSprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, **kwargs)
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self._set_hyper("rho", rho)
        self._set_hyper("momentum", momentum)
        self._has_momentum = not is_number(momentum) or momentum > 0
        self.epsilon, self.centered = epsilon or small_number(), centered

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer:
        momentum = self._get_hyper("momentum", "float32") if self._has_momentum else None
        rho = self._get_hyper("rho", "float32")
        return optimizer_rules.RMSProp(self._name, rate, step, rho, momentum, self.epsilon, self.centered)


class Adagrad(Optimizer):
    """Adagrad. Further arguments as for `Optimizer`."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float | None = 1e-7,
        name: str = "Adagrad",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, **kwargs)
        if initial_accumulator_value < 0.0:
            raise ValueError(f"initial_accumulator_value must be non-negative: {initial_accumulator_value}")
        self.epsilon, self._start = epsilon or small_number(), initial_accumulator_value

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """What `get_config` describes. Sums begin with 0 where it does not say, as those of ``"adagrad"`` do."""
        return super().from_config({"initial_accumulator_value": 0.0, **config}, custom_objects)

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer:
        return optimizer_rules.Adagrad(self._name, rate, step, self._start, self.epsilon)


class Adadelta(Optimizer):
    """Adadelta. Further arguments as for `Optimizer`."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.95,
        epsilon: float | None = 1e-7,
        name: str = "Adadelta",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, **kwargs)
        self._set_hyper("rho", rho)
        self.epsilon = epsilon or small_number()

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer:
        return optimizer_rules.Adadelta(rate, self._get_hyper("rho", "float32"), self.epsilon, name=self._name)


class Adam(Optimizer):
    """Adam; with `amsgrad` the greatest mean of squares so far counts. Further arguments as for `Optimizer`."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float | None = 1e-7,
        amsgrad: bool = False,
        name: str = "Adam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, **kwargs)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon, self.amsgrad = epsilon or small_number(), amsgrad

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer:
        return optimizer_rules.Adam(self._name, rate, step, _betas(self), self.epsilon, self.amsgrad)


class Adamax(Optimizer):
    """Adam with the greatest gradient in place of the mean of squares. Further arguments as for `Optimizer`."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float | None = 1e-7,
        name: str = "Adamax",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, **kwargs)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon or small_number()

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer:
        return optimizer_rules.Adamax(self._name, rate, step, _betas(self), self.epsilon)


class Nadam(Optimizer):
    """Adam with Nesterov's momentum, which grows with time by ``schedule_decay``, 0.004 where it is not given.

    Further arguments as for `Optimizer`.

    Raises:
        ValueError: The learning rate is a schedule.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float | None = 1e-7,
        name: str = "Nadam",
        **kwargs: Any,
    ) -> None:
        self._schedule_decay = kwargs.pop("schedule_decay", 0.004)
        kwargs.pop("decay", None)  # configurations have the other decay under this name
        super().__init__(name, learning_rate, **kwargs)
        if isinstance(self._hyper["learning_rate"], schedules.LearningRateSchedule):
            raise ValueError(
                "The Nadam optimizer does not support tf.keras.optimizers.LearningRateSchedules as the learning rate."
            )
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon or small_number()

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal optimizer; ``decay`` is the growth of the momentum, as in TensorFlow."""
        return {**super().get_config(), "decay": self._schedule_decay}

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer:
        return optimizer_rules.Nadam(self._name, rate, step, _betas(self), self.epsilon, self._schedule_decay)


class Ftrl(Optimizer):
    """Ftrl; arguments as for `tf.train.FtrlOptimizer` and `Optimizer`."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, **kwargs)
        self._settings: dict[str, Any] = {
            "initial_accumulator_value": initial_accumulator_value,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        numbers: dict[str, Any] = {
            "learning_rate_power": learning_rate_power,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
        }
        FtrlOptimizer(0.0, **numbers, **self._settings)  # which checks them
        for key, value in numbers.items():
            self._set_hyper(key, value)

    def _rule(self, rate: Any, step: Any) -> TrainOptimizer:
        names = ("learning_rate_power", "l1_regularization_strength", "l2_regularization_strength")
        hypers = {key: self._get_hyper(key, "float32") for key in names}
        return optimizer_rules.Ftrl(rate, self._name, hypers, **self._settings)


def _betas(optimizer: Optimizer) -> tuple[Tensor, Tensor]:
    """The decays of an optimizer's means, float32."""
    return optimizer._get_hyper("beta_1", "float32"), optimizer._get_hyper("beta_2", "float32")


def is_number(value: Any) -> bool:
    """Whether a hyperparameter is a number, of which a variable can be made."""
    return isinstance(value, (int, float, np.number)) or (isinstance(value, np.ndarray) and value.ndim == 0)


_BY_NAME: Final[dict[str, Callable[[], Optimizer]]] = {
    kind.__name__.lower(): kind for kind in (SGD, RMSprop, Adagrad, Adadelta, Adam, Adamax, Nadam, Ftrl)
}


def get(identifier: Any) -> Any:
    """An optimizer by name or of its description; one of ``tf.train`` wrapped; one of this module as it is.

    Raises:
        InvalidArgumentError: There is none. It is also a `ValueError`.
    """
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, TrainOptimizer):
        return _Given(identifier)
    if isinstance(identifier, Mapping):
        return restored(identifier)
    if not isinstance(identifier, str):
        raise InvalidArgumentError(f"Could not interpret optimizer identifier: {identifier}")
    known = identifier.lower() if identifier.lower() in _BY_NAME else identifier
    made = named_object(known, _BY_NAME, "optimizer")
    return Adagrad.from_config({}) if type(made) is Adagrad else made


class _Given(Optimizer):
    """An optimizer of ``tf.train``, which has a learning rate of its own."""

    def __init__(self, optimizer: TrainOptimizer) -> None:
        super().__init__("TFOptimizer")
        self.optimizer = optimizer

    def _named(self) -> AbstractContextManager[str | None]:
        """No scope: the names are those that it gives without Keras."""
        return nullcontext()

    def _variable(self, value: Any, name: str, dtype: DTypeLike = "float32") -> Any:
        root = get_default_graph().root
        with root.as_default(), root.control_dependencies(None), root.name_scope("TFOptimizer/"):
            return Variable(value, trainable=False, name="iterations" if name == "iter" else name, dtype=dtype)

    def _begin_step(self) -> None:
        """Nothing: its hyperparameters are its own."""

    def _optimizer_of_step(self) -> TrainOptimizer:
        return self.optimizer

    def get_slot_names(self) -> list[str]:
        """None: the optimizer within has them."""
        return []

    @property
    def _checkpoint_dependencies(self) -> list[tuple[str, Any]]:
        counted = [] if self._iterations is None else [("global_step", self._iterations)]
        return [("optimizer", self.optimizer), *counted]

    def fresh(self) -> Optimizer:
        """One like this that has made no step."""
        return type(self)(self.optimizer)


def of_train(optimizer: Optimizer) -> bool:
    """Whether it is one of ``tf.train``, which cannot be described."""
    return isinstance(optimizer, _Given)


deserialize = deserializer(get)
