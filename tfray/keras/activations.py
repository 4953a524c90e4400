"""``tf.keras.activations``: activation functions, and `get`, which finds one by name."""

# isort: skip_file
from tfray.ops.math.arithmetic_ops import exp as exponential
from tfray.library.layers.named_activations import (
    elu as elu,
    get as get,
    hard_sigmoid as hard_sigmoid,
    linear as linear,
    relu as relu,
    selu as selu,
    sigmoid as sigmoid,
    softmax as softmax,
    softplus as softplus,
    softsign as softsign,
    tanh as tanh,
)

# fmt: off
__all__ = [
    "elu", "exponential", "get", "hard_sigmoid", "linear", "relu", "selu", "sigmoid", "softmax", "softplus", "softsign",
    "tanh",
]
# fmt: on
