"""The names of ``tf.layers``."""

# isort: skip_file
from tfray.library.layers.base_layer import Layer as Layer
from tfray.library.layers.convolution_layers import (
    Conv1D as Conv1D,
    Conv2D as Conv2D,
    Conv2DTranspose as Conv2DTranspose,
    Conv3D as Conv3D,
    Conv3DTranspose as Conv3DTranspose,
    SeparableConv1D as SeparableConv1D,
    SeparableConv2D as SeparableConv2D,
    conv1d as conv1d,
    conv2d as conv2d,
    conv2d_transpose as conv2d_transpose,
    conv3d as conv3d,
    conv3d_transpose as conv3d_transpose,
    separable_conv1d as separable_conv1d,
    separable_conv2d as separable_conv2d,
)
from tfray.library.layers.core_layers import (
    Dense as Dense,
    Dropout as Dropout,
    Flatten as Flatten,
    dense as dense,
    dropout as dropout,
    flatten as flatten,
)
from tfray.library.layers.normalization_layers import (
    BatchNormalization as BatchNormalization,
    batch_normalization as batch_normalization,
)
from tfray.library.layers.pooling_layers import (
    AveragePooling1D as AveragePooling1D,
    AveragePooling2D as AveragePooling2D,
    AveragePooling3D as AveragePooling3D,
    MaxPooling1D as MaxPooling1D,
    MaxPooling2D as MaxPooling2D,
    MaxPooling3D as MaxPooling3D,
    average_pooling1d as average_pooling1d,
    average_pooling2d as average_pooling2d,
    average_pooling3d as average_pooling3d,
    max_pooling1d as max_pooling1d,
    max_pooling2d as max_pooling2d,
    max_pooling3d as max_pooling3d,
)
