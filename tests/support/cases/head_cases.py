"""Heads of estimators, whose metrics take two batches in.

Nothing here is tfray's: `scripts/golden_heads.py` runs the same with TensorFlow 1.15.
"""

import numpy as np

WEIGHTS = [1.0, 2.0, 0.5, 1.5, 3.0]
WORDS = ["a", "b", "c"]


def cases(tf):
    """By name: a function that makes the head, the logits of both batches, and their labels."""
    rng = np.random.RandomState(0)
    logits = {size: rng.randn(2, 5, size).astype(np.float32) for size in (1, 3, 5)}
    binary, several = rng.randint(0, 2, [2, 5, 1]), rng.randint(0, 3, [2, 5, 1])
    many, numbers = rng.randint(0, 2, [2, 5, 3]), rng.randn(2, 5, 3).astype(np.float32)
    shares = rng.rand(2, 5).astype(np.float32)
    counts = rng.poisson(2, [2, 5, 1]).astype(np.float32)
    three = [{"one": binary[i], "two": counts[i], "three": several[i]} for i in range(2)]
    own = tf.estimator

    def several_heads():
        heads = [
            own.BinaryClassHead("w", name="one"),
            own.RegressionHead(name="two"),
            own.MultiClassHead(3, name="three"),
        ]
        return own.MultiHead(heads, [1.0, 2.0, 0.5])

    return {
        "binary": (lambda: own.BinaryClassHead("w", [0.3, 0.5], name="h"), logits[1], binary),
        "shares": (lambda: own.BinaryClassHead(), logits[1], shares),
        "several": (lambda: own.MultiClassHead(3, "w"), logits[3], several),
        "many": (
            lambda: own.MultiLabelHead(3, "w", [0.4], classes_for_class_based_metrics=[0, 2]),
            logits[3],
            many,
        ),
        "words": (
            lambda: own.MultiLabelHead(3, label_vocabulary=WORDS, classes_for_class_based_metrics=["b"], name="m"),
            logits[3],
            many,
        ),
        "numbers": (lambda: own.RegressionHead(3, "w"), logits[3], numbers),
        "logistic": (lambda: own.LogisticRegressionHead("w"), logits[1], shares),
        "counts": (lambda: own.PoissonRegressionHead(name="p"), logits[1], counts),
        "heads": (several_heads, logits[5], three),
    }


def run(tf, name):
    """The classes of the metrics that a head makes, and the values of those that it has updated, by their names."""
    make, logits, labels = cases(tf)[name]
    head = make()
    of_logits = tf.placeholder(tf.float32, logits[0].shape)
    of_labels, feeds = _placeholders(tf, labels)
    extra = [tf.constant(0.5), tf.constant(0.25)]
    metrics = head.metrics(regularization_losses=extra)
    made = {key: type(metric).__name__ for key, metric in metrics.items()}
    features = {"w": tf.constant(WEIGHTS)}
    updated = head.update_metrics(metrics, features, of_logits, of_labels, regularization_losses=extra)
    results = {key: metric.result() for key, metric in updated.items()}
    updates = [update for metric in updated.values() for update in metric.updates]
    # TensorFlow's variables of metrics are in no collection.
    first = [op for op in tf.get_default_graph().get_operations() if op.name.endswith("/Assign")]
    with tf.Session() as session:
        session.run([tf.local_variables_initializer(), tf.tables_initializer()])
        session.run(first)
        for i, feed in enumerate(feeds):
            session.run(updates, {of_logits: logits[i], **feed})
        values = session.run(results)
    return {"made": made, "values": {key: round(float(values[key]), 6) for key in sorted(values)}}


def _placeholders(tf, labels):
    """Placeholders of labels, and what to feed for each batch."""
    if not isinstance(labels[0], dict):
        made = tf.placeholder(tf.as_dtype(labels[0].dtype), labels[0].shape)
        return made, [{made: batch} for batch in labels]
    of = {key: tf.placeholder(tf.as_dtype(value.dtype), value.shape) for key, value in labels[0].items()}
    return of, [{of[key]: value for key, value in batch.items()} for batch in labels]
