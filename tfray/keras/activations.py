"""``tf.keras.activations``: activation functions, and `get`, which finds one by name."""

from tfray.keras.tensor_functions import elu as elu
from tfray.keras.tensor_functions import relu as relu
from tfray.library.layers.descriptions import deserializer
from tfray.library.layers.descriptions import serialize as serialize
from tfray.library.layers.named_activations import get as get
from tfray.library.layers.named_activations import hard_sigmoid as hard_sigmoid
from tfray.library.layers.named_activations import linear as linear
from tfray.library.layers.named_activations import selu as selu
from tfray.library.layers.named_activations import sigmoid as sigmoid
from tfray.library.layers.named_activations import softmax as softmax
from tfray.library.layers.named_activations import softplus as softplus
from tfray.library.layers.named_activations import softsign as softsign
from tfray.library.layers.named_activations import tanh as tanh
from tfray.ops.math.arithmetic_ops import exp as exponential

# fmt: off
__all__ = [
    "deserialize", "elu", "exponential", "get", "hard_sigmoid", "linear", "relu", "selu", "serialize", "sigmoid",
    "softmax", "softplus", "softsign", "tanh",
]
# fmt: on

deserialize = deserializer(get)
