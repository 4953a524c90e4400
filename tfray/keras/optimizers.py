"""Optimizers of Keras models: those of ``tf.train`` with Keras's names and a learning rate that can be set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tfray.errors import InvalidArgumentError
from tfray.framework.graph import Operation, get_default_graph
from tfray.keras.backend import get_session
from tfray.library.layers.descriptions import Described, deserializer
from tfray.library.layers.descriptions import serialize as serialize
from tfray.library.variables.clip import clip_by_norm
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops
from tfray.ops.math import math_ops
from tfray.training.optimizers.adadelta import AdadeltaOptimizer
from tfray.training.optimizers.adagrad import AdagradOptimizer
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.nadam import NadamOptimizer
from tfray.training.optimizers.optimizer import Optimizer as TrainOptimizer
from tfray.training.optimizers.rms_prop import RMSPropOptimizer

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "Nadam", "Optimizer", "RMSprop", "deserialize", "get", "serialize"]


class Optimizer(Described):
    """An optimizer of ``tf.train`` whose learning rate is a variable.

    Args:
        make: From the learning rate to the optimizer.
        lr: The learning rate.
        decay: The rate is divided by ``1 + decay * steps``.
        clipnorm: Largest norm of each gradient.
        clipvalue: Largest absolute value of elements of gradients.

    Attributes:
        lr: The learning rate: a number, and a variable once a model is compiled.
        weights: The optimizer's variables, once a model has a training step: the rate, and those that hold how far it
            has come.
    """

    def __init__(
        self,
        make: Callable[[Any], TrainOptimizer],
        lr: Any,
        decay: float = 0.0,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
    ) -> None:
        self.lr = lr
        self._make = make
        self._decay = decay
        self._clipnorm = clipnorm
        self._clipvalue = clipvalue
        self.weights: list[Any] = []

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal optimizer, with the learning rate of now."""
        rate = get_session().run(self.lr) if hasattr(self.lr, "handle") else self.lr
        config = {**super().get_config(), "lr": float(rate)}
        config.pop("learning_rate", None)
        return config

    def get_weights(self) -> list[Any]:
        """Values of `weights`."""
        values: list[Any] = get_session().run(self.weights)
        return values

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the optimizer's variables, in the order of `get_weights`."""
        for variable, value in zip(self.weights, weights, strict=True):
            variable.load(value, get_session())

    def minimize(self, loss: Any, variables: Any) -> Operation:
        """The operation that makes one step."""
        graph = get_default_graph()
        with graph.name_scope("training"):
            if not hasattr(self.lr, "handle"):
                self.lr = Variable(float(self.lr), trainable=False, name="lr")
            rate, step = self.lr.value(), None
            if self._decay:
                step = Variable(0.0, trainable=False, name="iterations")
                rate = rate / (1.0 + self._decay * step)
            optimizer = self._make(rate)
            pairs = optimizer.compute_gradients(loss, variables)
            made = optimizer.apply_gradients([(self._clipped(grad), var) for grad, var in pairs], step)
        slots = [optimizer.get_slot(variable, name) for variable in variables for name in optimizer.get_slot_names()]
        others = [variable for variable in optimizer.variables() if variable not in slots]
        self.weights = [known for known in (self.lr, step, *slots, *others) if known is not None]
        return made

    def _clipped(self, gradient: Any) -> Any:
        if gradient is None:
            return None
        if self._clipnorm is not None:
            gradient = clip_by_norm(gradient, self._clipnorm)
        if self._clipvalue is not None:
            limit = array_ops.cast(self._clipvalue, gradient.dtype)
            gradient = math_ops.maximum(math_ops.minimum(gradient, limit), -limit)
        return gradient


class SGD(Optimizer):
    """Gradient descent, with momentum."""

    def __init__(self, lr: Any = 0.01, momentum: float = 0.0, decay: float = 0.0, nesterov: bool = False, **kw: Any):
        def make(rate: Any) -> TrainOptimizer:
            if not momentum:
                return GradientDescentOptimizer(rate)
            return MomentumOptimizer(rate, momentum, use_nesterov=nesterov)

        super().__init__(make, kw.pop("learning_rate", lr), decay, **kw)


class RMSprop(Optimizer):
    """RMSProp."""

    def __init__(self, lr: Any = 0.001, rho: float = 0.9, epsilon: float | None = None, decay: float = 0.0, **kw: Any):
        super().__init__(
            lambda rate: RMSPropOptimizer(rate, rho, epsilon=epsilon or 1e-7), kw.pop("learning_rate", lr), decay, **kw
        )


class Adagrad(Optimizer):
    """Adagrad."""

    def __init__(self, lr: Any = 0.01, decay: float = 0.0, **kw: Any):
        super().__init__(AdagradOptimizer, kw.pop("learning_rate", lr), decay, **kw)


class Adadelta(Optimizer):
    """Adadelta."""

    def __init__(self, lr: Any = 1.0, rho: float = 0.95, epsilon: float | None = None, decay: float = 0.0, **kw: Any):
        super().__init__(
            lambda rate: AdadeltaOptimizer(rate, rho, epsilon or 1e-7), kw.pop("learning_rate", lr), decay, **kw
        )


class Adam(Optimizer):
    """Adam."""

    def __init__(
        self,
        lr: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float | None = None,
        decay: float = 0.0,
        **kw: Any,
    ):
        super().__init__(
            lambda rate: AdamOptimizer(rate, beta_1, beta_2, epsilon or 1e-7),
            kw.pop("learning_rate", lr),
            decay,
            **kw,
        )


class Nadam(Optimizer):
    """Adam with Nesterov's momentum."""

    def __init__(self, lr: Any = 0.002, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **kw: Any):
        super().__init__(lambda rate: NadamOptimizer(rate, beta_1, beta_2, epsilon), kw.pop("learning_rate", lr), **kw)


_BY_NAME: Final[dict[str, Callable[[], Optimizer]]] = {
    kind.__name__.lower(): kind for kind in (SGD, RMSprop, Adagrad, Adadelta, Adam, Nadam)
}


def get(identifier: Any) -> Optimizer:
    """An optimizer by name; one of ``tf.train`` wrapped; one of this module as it is."""
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, TrainOptimizer):
        return _Given(identifier)
    if str(identifier).lower() not in _BY_NAME:
        raise InvalidArgumentError(f"there is no optimizer {identifier!r}; there are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[identifier.lower()]()


class _Given(Optimizer):
    """An optimizer of ``tf.train``, which has a learning rate of its own."""

    def __init__(self, optimizer: TrainOptimizer) -> None:
        super().__init__(lambda rate: optimizer, 0.0)


def of_train(optimizer: Optimizer) -> bool:
    """Whether it is one of ``tf.train``, which cannot be described."""
    return isinstance(optimizer, _Given)


deserialize = deserializer(get)
