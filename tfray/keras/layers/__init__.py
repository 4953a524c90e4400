"""``tf.keras.layers``: layers of models, which also record the tensors that they were called with.

`Model` uses these records to find the layers between its inputs and outputs. Layers that behave differently in training
read `tf.keras.backend.learning_phase`. A layer may give its outputs a mask, which says what of them is to be left out;
layers that follow, losses and metrics heed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfray.keras.layers.attention_layers import AdditiveAttention as AdditiveAttention
from tfray.keras.layers.attention_layers import Attention as Attention
from tfray.keras.layers.convolved_recurrent_layers import ConvLSTM2D as ConvLSTM2D
from tfray.keras.layers.convolved_recurrent_layers import CuDNNGRU as CuDNNGRU
from tfray.keras.layers.convolved_recurrent_layers import CuDNNLSTM as CuDNNLSTM
from tfray.keras.layers.image_layers import AveragePooling1D as AveragePooling1D
from tfray.keras.layers.image_layers import AveragePooling2D as AveragePooling2D
from tfray.keras.layers.image_layers import AveragePooling3D as AveragePooling3D
from tfray.keras.layers.image_layers import Conv1D as Conv1D
from tfray.keras.layers.image_layers import Conv2D as Conv2D
from tfray.keras.layers.image_layers import Conv2DTranspose as Conv2DTranspose
from tfray.keras.layers.image_layers import Conv3D as Conv3D
from tfray.keras.layers.image_layers import Conv3DTranspose as Conv3DTranspose
from tfray.keras.layers.image_layers import Cropping1D as Cropping1D
from tfray.keras.layers.image_layers import Cropping2D as Cropping2D
from tfray.keras.layers.image_layers import Cropping3D as Cropping3D
from tfray.keras.layers.image_layers import GlobalAveragePooling1D as GlobalAveragePooling1D
from tfray.keras.layers.image_layers import GlobalAveragePooling2D as GlobalAveragePooling2D
from tfray.keras.layers.image_layers import GlobalAveragePooling3D as GlobalAveragePooling3D
from tfray.keras.layers.image_layers import GlobalMaxPooling1D as GlobalMaxPooling1D
from tfray.keras.layers.image_layers import GlobalMaxPooling2D as GlobalMaxPooling2D
from tfray.keras.layers.image_layers import GlobalMaxPooling3D as GlobalMaxPooling3D
from tfray.keras.layers.image_layers import MaxPooling1D as MaxPooling1D
from tfray.keras.layers.image_layers import MaxPooling2D as MaxPooling2D
from tfray.keras.layers.image_layers import MaxPooling3D as MaxPooling3D
from tfray.keras.layers.image_layers import SeparableConv1D as SeparableConv1D
from tfray.keras.layers.image_layers import SeparableConv2D as SeparableConv2D
from tfray.keras.layers.image_layers import UpSampling1D as UpSampling1D
from tfray.keras.layers.image_layers import UpSampling2D as UpSampling2D
from tfray.keras.layers.image_layers import UpSampling3D as UpSampling3D
from tfray.keras.layers.image_layers import ZeroPadding1D as ZeroPadding1D
from tfray.keras.layers.image_layers import ZeroPadding2D as ZeroPadding2D
from tfray.keras.layers.image_layers import ZeroPadding3D as ZeroPadding3D
from tfray.keras.layers.layer_wrappers import Bidirectional as Bidirectional
from tfray.keras.layers.layer_wrappers import TimeDistributed as TimeDistributed
from tfray.keras.layers.layer_wrappers import Wrapper as Wrapper
from tfray.keras.layers.local_layers import DepthwiseConv2D as DepthwiseConv2D
from tfray.keras.layers.local_layers import LocallyConnected1D as LocallyConnected1D
from tfray.keras.layers.local_layers import LocallyConnected2D as LocallyConnected2D
from tfray.keras.layers.merging_layers import Add as Add
from tfray.keras.layers.merging_layers import Average as Average
from tfray.keras.layers.merging_layers import Concatenate as Concatenate
from tfray.keras.layers.merging_layers import Dot as Dot
from tfray.keras.layers.merging_layers import Maximum as Maximum
from tfray.keras.layers.merging_layers import Minimum as Minimum
from tfray.keras.layers.merging_layers import Multiply as Multiply
from tfray.keras.layers.merging_layers import Subtract as Subtract
from tfray.keras.layers.merging_layers import add as add
from tfray.keras.layers.merging_layers import average as average
from tfray.keras.layers.merging_layers import concatenate as concatenate
from tfray.keras.layers.merging_layers import dot as dot
from tfray.keras.layers.merging_layers import maximum as maximum
from tfray.keras.layers.merging_layers import minimum as minimum
from tfray.keras.layers.merging_layers import multiply as multiply
from tfray.keras.layers.merging_layers import subtract as subtract
from tfray.keras.layers.plain_layers import ELU as ELU
from tfray.keras.layers.plain_layers import Activation as Activation
from tfray.keras.layers.plain_layers import ActivityRegularization as ActivityRegularization
from tfray.keras.layers.plain_layers import AlphaDropout as AlphaDropout
from tfray.keras.layers.plain_layers import BatchNormalization as BatchNormalization
from tfray.keras.layers.plain_layers import Dense as Dense
from tfray.keras.layers.plain_layers import DenseFeatures as DenseFeatures
from tfray.keras.layers.plain_layers import Dropout as Dropout
from tfray.keras.layers.plain_layers import Embedding as Embedding
from tfray.keras.layers.plain_layers import Flatten as Flatten
from tfray.keras.layers.plain_layers import GaussianDropout as GaussianDropout
from tfray.keras.layers.plain_layers import GaussianNoise as GaussianNoise
from tfray.keras.layers.plain_layers import Input as Input
from tfray.keras.layers.plain_layers import InputLayer as InputLayer
from tfray.keras.layers.plain_layers import Lambda as Lambda
from tfray.keras.layers.plain_layers import LayerNormalization as LayerNormalization
from tfray.keras.layers.plain_layers import LeakyReLU as LeakyReLU
from tfray.keras.layers.plain_layers import Masking as Masking
from tfray.keras.layers.plain_layers import Permute as Permute
from tfray.keras.layers.plain_layers import PReLU as PReLU
from tfray.keras.layers.plain_layers import ReLU as ReLU
from tfray.keras.layers.plain_layers import RepeatVector as RepeatVector
from tfray.keras.layers.plain_layers import Reshape as Reshape
from tfray.keras.layers.plain_layers import Softmax as Softmax
from tfray.keras.layers.plain_layers import SpatialDropout1D as SpatialDropout1D
from tfray.keras.layers.plain_layers import SpatialDropout2D as SpatialDropout2D
from tfray.keras.layers.plain_layers import SpatialDropout3D as SpatialDropout3D
from tfray.keras.layers.plain_layers import ThresholdedReLU as ThresholdedReLU
from tfray.keras.layers.recurrent_layers import GRU as GRU
from tfray.keras.layers.recurrent_layers import LSTM as LSTM
from tfray.keras.layers.recurrent_layers import RNN as RNN
from tfray.keras.layers.recurrent_layers import AbstractRNNCell as AbstractRNNCell
from tfray.keras.layers.recurrent_layers import GRUCell as GRUCell
from tfray.keras.layers.recurrent_layers import LSTMCell as LSTMCell
from tfray.keras.layers.recurrent_layers import SimpleRNN as SimpleRNN
from tfray.keras.layers.recurrent_layers import SimpleRNNCell as SimpleRNNCell
from tfray.keras.layers.recurrent_layers import StackedRNNCells as StackedRNNCells
from tfray.library.layers.descriptions import described, restored
from tfray.library.layers.input_spec import InputSpec as InputSpec
from tfray.library.layers.keras_layer import Layer as Layer

# fmt: off
__all__ = [
    "ELU", "GRU", "LSTM", "RNN", "AbstractRNNCell", "Activation", "ActivityRegularization", "Add",
    "AdditiveAttention", "AlphaDropout", "Attention", "Average", "AveragePooling1D", "AveragePooling2D",
    "AveragePooling3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "BatchNormalization", "Bidirectional", "Concatenate",
    "Conv1D", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "ConvLSTM2D", "Convolution1D",
    "Convolution2D", "Convolution2DTranspose", "Convolution3D", "Convolution3DTranspose", "Cropping1D", "Cropping2D",
    "Cropping3D", "CuDNNGRU", "CuDNNLSTM", "Dense", "DenseFeatures", "DepthwiseConv2D", "Dot", "Dropout", "Embedding",
    "Flatten", "GRUCell", "GaussianDropout", "GaussianNoise", "GlobalAveragePooling1D", "GlobalAveragePooling2D",
    "GlobalAveragePooling3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D",
    "GlobalMaxPool2D", "GlobalMaxPool3D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "Input",
    "InputLayer", "InputSpec", "LSTMCell", "Lambda", "Layer", "LayerNormalization", "LeakyReLU", "LocallyConnected1D",
    "LocallyConnected2D", "Masking", "MaxPool1D", "MaxPool2D", "MaxPool3D", "MaxPooling1D", "MaxPooling2D",
    "MaxPooling3D", "Maximum", "Minimum", "Multiply", "PReLU", "Permute", "ReLU", "RepeatVector", "Reshape",
    "SeparableConv1D", "SeparableConv2D", "SeparableConvolution1D", "SeparableConvolution2D", "SimpleRNN",
    "SimpleRNNCell", "Softmax", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "StackedRNNCells",
    "Subtract", "ThresholdedReLU", "TimeDistributed", "UpSampling1D", "UpSampling2D", "UpSampling3D", "Wrapper",
    "ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D", "add", "average", "concatenate", "deserialize", "dot",
    "maximum", "minimum", "multiply", "serialize", "subtract",
]
# fmt: on

AvgPool1D = AveragePooling1D
AvgPool2D = AveragePooling2D
AvgPool3D = AveragePooling3D
Convolution1D = Conv1D
Convolution2D = Conv2D
Convolution2DTranspose = Conv2DTranspose
Convolution3D = Conv3D
Convolution3DTranspose = Conv3DTranspose
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D
MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
MaxPool3D = MaxPooling3D
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D


def serialize(layer: Any) -> Any:
    """A layer as plain data; see `deserialize`."""
    return described(layer)


def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The layer that `serialize` told of, made anew.

    Args:
        config: The description.
        custom_objects: Classes and functions of the program, by name.

    Raises:
        InvalidArgumentError: It describes no layer.
    """
    return restored(config, custom_objects)
