"""``tf.keras.wrappers``: models in the style of other libraries."""

from tfray.keras.wrappers import scikit_learn as scikit_learn

__all__ = ["scikit_learn"]
