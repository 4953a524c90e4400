"""Keras models of several kinds, with an optimizer, trained a little.

Nothing here is tfray's: `scripts/golden_keras_checkpoints.py` runs the same with TensorFlow 1.15.
"""

from __future__ import annotations

import numpy as np

X = np.random.RandomState(0).normal(size=(32, 6)).astype(np.float32)
Y = (X[:, :1] > 0).astype(np.float32)


def chain(keras):
    """Layers one after the other, some without weights, one with weights that no optimizer changes."""
    layers = keras.layers
    first = layers.Dense(5, activation="tanh", input_shape=(6,))
    return keras.Sequential([first, layers.BatchNormalization(), layers.Dropout(0.0), layers.Dense(1)])


def branches(keras):
    """Layers within layers."""
    layers = keras.layers
    image = keras.Input((6,))
    rows = layers.Reshape((3, 2))(image)
    both = layers.Bidirectional(layers.LSTM(3))(rows)
    last = layers.GRU(2)(layers.TimeDistributed(layers.Dense(4))(rows))
    return keras.Model(image, layers.Dense(1)(layers.concatenate([both, last])))


def within(keras):
    """A model within a model."""
    image = keras.Input((6,))
    return keras.Model(image, keras.layers.Dense(1)(chain(keras)(image)))


def derived(keras):
    """A class of the program's, which has no weights before its first call."""

    class Derived(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = keras.layers.Dense(4, activation="relu")
            self.others = [keras.layers.Dense(3), keras.layers.Dense(1)]

        def call(self, inputs):
            outputs = self.first(inputs)
            for layer in self.others:
                outputs = layer(outputs)
            return outputs

    return Derived()


MODELS = {build.__name__: build for build in (chain, branches, within, derived)}

OPTIMIZERS = {
    "adam": lambda tf: tf.keras.optimizers.Adam(0.01),
    "momentum": lambda tf: tf.keras.optimizers.SGD(0.01, momentum=0.9, decay=0.1),
    "rmsprop": lambda tf: tf.keras.optimizers.RMSprop(0.01),
    "nadam": lambda tf: tf.keras.optimizers.Nadam(0.01),
    "of tf.train": lambda tf: tf.compat.v1.train.AdamOptimizer(0.01),
}

CASES = [*((name, "adam") for name in MODELS), *(("chain", name) for name in OPTIMIZERS if name != "adam")]


def compiled(tf, model, optimizer):
    """A new model of that kind, compiled with that optimizer."""
    made = MODELS[model](tf.keras)
    made.compile(OPTIMIZERS[optimizer](tf), "mse")
    return made


def train(model):
    """Make four steps. Returns what the model then predicts."""
    model.fit(X, Y, batch_size=8, epochs=1, shuffle=False, verbose=0)
    return model.predict(X)
