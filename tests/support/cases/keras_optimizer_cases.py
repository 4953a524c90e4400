"""Optimizers of Keras over a few steps, with dense and with sparse gradients.

Nothing here is tfray's: `scripts/golden_keras_optimizers.py` runs the same with TensorFlow.
"""

from __future__ import annotations

CASES = {
    "sgd": lambda o: o.SGD(0.1, decay=0.3),
    "momentum": lambda o: o.SGD(0.1, 0.9, decay=0.2),
    "nesterov": lambda o: o.SGD(0.1, 0.9, nesterov=True, clipnorm=1.0),
    "rmsprop": lambda o: o.RMSprop(0.1),
    "rmsprop with momentum": lambda o: o.RMSprop(0.1, momentum=0.5),
    "centered rmsprop": lambda o: o.RMSprop(0.1, centered=True),
    "centered rmsprop with momentum": lambda o: o.RMSprop(0.1, momentum=0.5, centered=True),
    "adagrad": lambda o: o.Adagrad(0.1),
    "adadelta": lambda o: o.Adadelta(1.0),
    "adam": lambda o: o.Adam(0.1),
    "amsgrad": lambda o: o.Adam(0.1, amsgrad=True, clipvalue=0.5),
    "adamax": lambda o: o.Adamax(0.1),
    "nadam": lambda o: o.Nadam(0.1),
    "ftrl": lambda o: o.Ftrl(0.1, l1_regularization_strength=0.1),
    "exponential decay": lambda o: o.SGD(o.schedules.ExponentialDecay(0.1, 2, 0.5)),
    "polynomial decay": lambda o: o.Adam(o.schedules.PolynomialDecay(0.1, 3, 0.01)),
    "pieces": lambda o: o.SGD(o.schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2, 0.3])),
    "inverse time decay": lambda o: o.SGD(o.schedules.InverseTimeDecay(0.1, 1, 0.5)),
}


def run(tf, optimizers, name):
    """The values of a vector, and of a table of which some rows are used, after five steps."""
    tf.reset_default_graph()
    vector = tf.Variable([1.0, -2.0, 3.0], use_resource=True)
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]], use_resource=True)
    scale = tf.placeholder(tf.float32, [])
    loss = tf.reduce_sum(tf.square(vector) * tf.constant([1.0, 0.5, 2.0])) * scale
    loss += tf.reduce_sum(tf.square(tf.gather(table, [0, 2, 0])))
    optimizer = CASES[name](optimizers)
    update = optimizer.get_updates(loss, [vector, table])[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(5):
            session.run(update, {scale: 1.0 + 0.3 * step})
        return [session.run(vector).tolist(), session.run(table).tolist(), int(session.run(optimizer.iterations))]
