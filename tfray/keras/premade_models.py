"""Models that come ready: ``tf.keras.experimental.LinearModel`` and ``WideDeepModel``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from tfray.framework.graph import Tensor
from tfray.keras import activations, initializers, optimizers, regularizers
from tfray.keras.layers import Dense
from tfray.keras.models import Model
from tfray.library.layers.descriptions import described, restored
from tfray.ops.math import math_ops

__all__ = ["LinearModel", "WideDeepModel"]


class LinearModel(Model):
    """A sum of products of inputs and weights, and a bias.

    It is called with a tensor, ``[batch, size]``, which may be sparse, or with a list of them, and gives
    ``[batch, units]``.

    Args:
        units: Size of the output.
        activation: Activation of the output; none when None.
        use_bias: Have a bias.
        kernel_initializer: Initializer of the weights.
        bias_initializer: Initializer of the bias.
        kernel_regularizer: Regularizer of the weights.
        bias_regularizer: Regularizer of the bias.
        **kwargs: As for `Layer`.
    """

    def __init__(
        self,
        units: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.use_bias = units, use_bias
        self.activation = activations.get(activation)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)

    def build(self, input_shape: Any = None) -> None:
        count = len(input_shape) if isinstance(input_shape, list) else 1
        self.dense_layers = [
            Dense(
                self.units,
                use_bias=False,
                kernel_initializer=self.kernel_initializer,
                kernel_regularizer=self.kernel_regularizer,
            )
            for _ in range(count)
        ]
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.units], initializer=self.bias_initializer, regularizer=self.bias_regularizer
            )
        self.built = True

    def call(self, inputs: Any) -> Any:  # type: ignore[override]
        """The activation of the sum.

        Raises:
            ValueError: There are more or fewer inputs than at the first call.
        """
        given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        if len(given) != len(self.dense_layers):
            raise ValueError(f"Expected {len(self.dense_layers)} inputs, but got {len(given)} inputs")
        total = math_ops.add_n([layer(each) for layer, each in zip(self.dense_layers, given, strict=True)])
        return self.activation(total if self.bias is None else total + self.bias)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal model."""
        names = "kernel_initializer", "bias_initializer", "kernel_regularizer", "bias_regularizer"
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": None,
            "units": self.units,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            **{name: described(getattr(self, name)) for name in names},
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """What `get_config` describes. `custom_objects` is not used."""
        return cls(**config)


class WideDeepModel(Model):
    """The mean of the outputs of two models, which are trained together.

    It is called with the inputs of the two, or with one tensor for both. `compile` also takes a list of two
    optimizers, one for each.

    Args:
        linear_model: A `LinearModel`.
        dnn_model: A model with the same outputs.
        activation: Activation of the mean; none when None.
        **kwargs: As for `Layer`.

    Reference: Cheng et al., "Wide & deep learning for recommender systems", 2016.
    """

    def __init__(self, linear_model: Any, dnn_model: Any, activation: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.linear_model, self.dnn_model = linear_model, dnn_model
        self.activation = activations.get(activation)

    def call(self, inputs: Any) -> Any:  # type: ignore[override]
        """The activation of the mean."""
        both = inputs if isinstance(inputs, (list, tuple)) and len(inputs) == 2 else (inputs, inputs)
        return self.activation(0.5 * (self.linear_model(both[0]) + self.dnn_model(both[1])))

    def compile(self, optimizer: Any = "rmsprop", *args: Any, **kwargs: Any) -> None:
        """Say how the model is to be trained; arguments as for `Model.compile`."""
        two = optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]
        super().compile(two[0], *args, **kwargs)
        self.__second = optimizers.get(two[-1]) if len(two) == 2 else self.optimizer

    def _updates_for(self, loss: Tensor, variables: Sequence[Any]) -> list[Any]:
        linear = {id(variable) for variable in self.linear_model.trainable_variables}
        wide = [variable for variable in variables if id(variable) in linear]
        deep = [variable for variable in variables if id(variable) not in linear]
        return [*self.optimizer.get_updates(loss, wide), *self.__second.get_updates(loss, deep)]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal model, whose weights are others."""
        parts = {name: described(getattr(self, name)) for name in ("linear_model", "dnn_model")}
        return {"name": self.name, "activation": activations.serialize(self.activation), **parts}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Self:
        """What `get_config` describes."""
        parts = {name: restored(config[name], custom_objects) for name in ("linear_model", "dnn_model")}
        return cls(**{**config, **parts})
