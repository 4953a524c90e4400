"""``tf.contrib.saved_model``: models of `tf.keras` in folders, under the older names of their functions."""

from tfray.keras.experimental import export_saved_model as save_keras_model
from tfray.keras.experimental import load_from_saved_model as load_keras_model

__all__ = ["load_keras_model", "save_keras_model"]
