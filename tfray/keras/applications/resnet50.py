"""``tf.keras.applications.resnet50``: the residual network with 50 layers."""

from tfray.keras.applications.resnet import ResNet50 as ResNet50
from tfray.keras.applications.resnet import decode_predictions as decode_predictions
from tfray.keras.applications.resnet import preprocess_input as preprocess_input

__all__ = ["ResNet50", "decode_predictions", "preprocess_input"]
