"""``tf.keras.mixed_precision.experimental``: policies of layers, and an optimizer that scales the loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Operation
from tfray.keras import optimizers
from tfray.keras.optimizers import Optimizer
from tfray.library.layers.descriptions import restored
from tfray.library.platform import logging
from tfray.library.variables.dtype_policy import DtypePolicy, global_dtype_policy, set_global_dtype_policy
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.control.control_flow_ops import cond
from tfray.training.optimizers.loss_scale import LossScale, as_loss_scale, scaled

__all__ = ["LossScaleOptimizer", "Policy", "global_policy", "set_policy"]

_DEFAULT: Final = "USE_DEFAULT"


class Policy(DtypePolicy):
    """In which dtype a layer computes, and in which it keeps its variables: what layers take for their ``dtype``.

        half = tf.keras.mixed_precision.experimental.Policy("mixed_float16")
        hidden = tf.keras.layers.Dense(64, activation="relu", dtype=half)(inputs)
        outputs = tf.keras.layers.Dense(10, activation="softmax", dtype="float32")(tf.cast(hidden, "float32"))

    A layer with a policy casts floating inputs to `compute_dtype`, unless it is made with ``autocast=False``; its
    variables have `variable_dtype`, and are cast where it uses them, so that their gradients have `variable_dtype` too.
    TensorFlow 1's layers mostly refuse inputs of another dtype instead. As there, `get_config` of a layer tells the
    dtype of its variables: what is made of it, or read from a file, computes in that one.

    Args:
        name: ``mixed_float16`` or ``mixed_bfloat16``: computes in half precision, with variables of float32.
            ``<dtype>_with_float32_vars``: the same with any dtype. A dtype, as ``float32``: both are that.
            ``infer`` or ``infer_with_float32_vars``: computes in the dtype of the first input.
        loss_scale: What models that are made under this policy scale their losses by: a number, ``"dynamic"``, a
            `tf.train.experimental.LossScale`, or None. For ``mixed_float16`` it is ``"dynamic"`` by default, and None
            for others.

    Raises:
        TypeError: `name` is no text.
        ValueError: There is no such policy, or `loss_scale` is none of those.
    """

    def __init__(self, name: str, loss_scale: Any = _DEFAULT) -> None:
        super().__init__(name)
        if isinstance(loss_scale, str) and loss_scale == _DEFAULT:
            loss_scale = "dynamic" if name == "mixed_float16" else None
        if loss_scale is not None and self.compute_dtype not in (None, "float16"):
            logging.warning("a loss scale is of use in float16: policy %s has loss_scale=%r", name, loss_scale)
        self._loss_scale = None if loss_scale is None else as_loss_scale(loss_scale)

    @property
    def loss_scale(self) -> LossScale | None:
        """What models scale their losses by, or None."""
        return self._loss_scale

    def __repr__(self) -> str:
        return f'<Policy "{self.name}", loss_scale={self.loss_scale}>'


def global_policy() -> Policy:
    """The policy of layers that are made without a ``dtype``.

    Returns:
        What `set_policy` has set; otherwise ``infer``: layers take the dtype of their inputs.
    """
    found: Policy | None = global_dtype_policy()
    return Policy("infer") if found is None else found


def set_policy(policy: Policy | str | None) -> None:
    """Set the policy of layers that are made from now on without a ``dtype``.

    TensorFlow 1 takes none but those whose names begin with ``infer``. Here any may be set; layers that are made under
    one with a dtype then cast their inputs, as those of TensorFlow 2 do, also where they are made with a dtype: so
    ``Activation("softmax", dtype="float32")`` gives float32.

    Args:
        policy: The policy, or its name. None takes it away.

    Raises:
        TypeError: It is neither.
        ValueError: There is no policy of that name.
    """
    set_global_dtype_policy(policy if policy is None or isinstance(policy, Policy) else Policy(policy))


def optimizer_under(policy: DtypePolicy | None, optimizer: Any) -> Any:
    """An optimizer, within one that scales the loss where a policy says so.

    Args:
        policy: The policy of a model, or None.
        optimizer: The optimizer.

    Raises:
        ValueError: The loss is to be scaled, and the optimizer is none of `tf.keras.optimizers`.
    """
    scale = policy.loss_scale if isinstance(policy, Policy) else None
    return (
        optimizer
        if scale is None or isinstance(optimizer, LossScaleOptimizer)
        else LossScaleOptimizer(optimizer, scale)
    )


class LossScaleOptimizer(Optimizer):
    """An optimizer that lets another one minimise a scaled loss, and gives it the gradients of the loss itself.

        optimizer = tf.keras.optimizers.SGD(0.1)
        optimizer = tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, "dynamic")

    With a scale that is dynamic, a step whose gradients are not finite changes no variable, nor the count of steps.
    Hyperparameters, `iterations`, slots and weights are those of the other optimizer.

    Args:
        opt: The other optimizer, one of `tf.keras.optimizers` without `clipnorm` and `clipvalue`.
        loss_scale: A number, ``"dynamic"``, or a `tf.train.experimental.LossScale`.

    Raises:
        ValueError: `opt` is none of these, or `loss_scale` is none of those.
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer) or optimizers.of_train(opt):
            raise ValueError(f'"opt" must be an optimizer of tf.keras.optimizers, but got: {opt!r}')
        for name in ("clipnorm", "clipvalue"):
            if hasattr(opt, name):
                raise ValueError(
                    f"LossScaleOptimizer does not support wrapping optimizers with a {name}: {opt!r} has "
                    f"{name} {getattr(opt, name)}"
                )
        self._optimizer, self._loss_scale = opt, as_loss_scale(loss_scale)

    @property
    def loss_scale(self) -> LossScale:
        """What the loss is scaled by."""
        return self._loss_scale

    def __getattr__(self, name: str) -> Any:
        """What the other optimizer has: its hyperparameters among them."""
        if name == "_optimizer":  # not set yet
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        is_theirs = "_optimizer" in vars(self) and (name == "lr" or name in self._optimizer._hyper)
        (setattr if is_theirs else object.__setattr__)(self._optimizer if is_theirs else self, name, value)

    def get_scaled_loss(self, loss: Any) -> Any:
        """The loss times the scale, for gradients that a program computes itself; see `get_unscaled_gradients`.

        Args:
            loss: A float tensor, or a function without arguments that gives it.

        Returns:
            A tensor of the same shape and dtype, or a function that gives it.
        """
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        return scaled(convert_to_tensor(loss), self._loss_scale())

    def get_unscaled_gradients(self, grads: Sequence[Any]) -> list[Any]:
        """Gradients of a scaled loss over the scale: those of the loss itself.

        Args:
            grads: Tensors, `tf.IndexedSlices`, or None where there is none.

        Returns:
            As many, of the same shapes and dtypes.
        """
        factor = 1.0 / self._loss_scale()
        return [None if each is None else scaled(each, factor) for each in grads]

    def get_gradients(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """The gradients of a loss, by way of the scaled one. See `Optimizer.get_gradients`."""
        return self.get_unscaled_gradients(self._optimizer.get_gradients(self.get_scaled_loss(loss), params))

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None) -> list[tuple[Any, Any]]:
        pairs = self._optimizer._compute_gradients(self.get_scaled_loss(loss), var_list, grad_loss)
        found = self.get_unscaled_gradients([gradient for gradient, _ in pairs])
        return [(gradient, variable) for gradient, (_, variable) in zip(found, pairs, strict=True)]

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None = None) -> Operation:
        """As `Optimizer.apply_gradients`; the operation also changes a scale that is dynamic."""
        pairs = list(grads_and_vars)
        update, is_applied = self._loss_scale.update([gradient for gradient, _ in pairs])
        if is_applied is True:
            return group(self._optimizer.apply_gradients(pairs, name), update)
        applied = cond(
            convert_to_tensor(is_applied), lambda: group(self._optimizer.apply_gradients(pairs, name)), no_op
        )
        return group(applied, update)

    @property
    def iterations(self) -> Any:
        """The variable that counts steps, int64."""
        return self._optimizer.iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        self._optimizer.iterations = variable

    @property
    def weights(self) -> list[Any]:
        """The variables of the other optimizer."""
        return self._optimizer.weights

    def get_slot_names(self) -> list[str]:
        """Names of the other optimizer's variables that belong to one that is trained."""
        return self._optimizer.get_slot_names()

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """The other optimizer's variable of that name that belongs to `var`, or None."""
        return self._optimizer.get_slot(var, slot_name)

    @property
    def _checkpoint_dependencies(self) -> list[tuple[str, Any]]:
        return [("base_optimizer", self._optimizer), ("loss_scale", self._loss_scale)]

    def restore_weights(self, weights: Sequence[Any]) -> None:
        """As `Optimizer.restore_weights`, of the other optimizer."""
        self._optimizer.restore_weights(weights)

    def get_config(self) -> dict[str, Any]:
        """The descriptions of the other optimizer and of the scale. TensorFlow 1 has none."""
        scale = {"class_name": type(self._loss_scale).__name__, "config": self._loss_scale.get_config()}
        return {"optimizer": optimizers.serialize(self._optimizer), "loss_scale": scale}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """What `get_config` describes, made anew.

        Args:
            config: The description.
            custom_objects: Classes of a program's own optimizers and scales, by their names.

        Raises:
            ValueError: There is no such optimizer or scale.
        """
        made = restored(config, custom_objects, "optimizers")
        return cls(made["optimizer"], made["loss_scale"])

    @classmethod
    def _known_arguments(cls) -> set[str]:
        return {"optimizer", "loss_scale"}
