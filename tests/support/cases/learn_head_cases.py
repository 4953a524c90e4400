"""What the heads of ``tf.contrib.learn`` make of logits.

``python learn_head_cases.py > tests/golden/learn_heads.json``, run by TensorFlow 1.15, writes the expected values.
"""

import json

import numpy as np

ONE = np.array([[0.5], [-1.0], [2.0], [0.0]], np.float32)
THREE = np.array([[1.0, 0, -1], [0, 2, 1], [0.5, 0.5, 0], [-1, 0, 3]], np.float32)
WEIGHTS = np.array([1.0, 2, 0.5, 1], np.float32)
CLASSES = np.array([1, 0, 1, 1])
NUMBERS = np.array([1.0, 0, 2, 1], np.float32)


def heads(tf):
    """Head, labels and logits by name."""
    learn, weighted = tf.contrib.learn, {"weight_column_name": "w"}
    sparse = ([[0, 0], [1, 0], [1, 1], [3, 0]], [0, 1, 2, 2], [4, 2])
    both = [
        learn.multi_class_head(2, label_name="a", head_name="A"),
        learn.regression_head(label_name="b", head_name="B"),
        learn.head.loss_only_head(lambda: [tf.constant(1.0), tf.constant(2.0)], head_name="L"),
    ]
    words = np.array(["a", "b", "b", "c"])
    columns = np.array([[0], [1], [1], [2]])
    labels = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]])
    named = learn.regression_head(label_name="y", head_name="h", label_dimension=3, link_fn=tf.exp)
    binary = learn.multi_class_head(2, thresholds=[0.5, 0.7], enable_centered_bias=True, **weighted)
    multi = learn.multi_class_head(3, metric_class_ids=[0, 2], enable_centered_bias=True, head_name="m", **weighted)
    return {
        "regression": (learn.regression_head(enable_centered_bias=True, **weighted), NUMBERS, ONE),
        "named": (named, {"y": np.ones_like(THREE)}, THREE),
        "poisson": (learn.poisson_regression_head(**weighted), NUMBERS, ONE),
        "binary": (binary, CLASSES[:, None], ONE),
        "binary without weights": (learn.multi_class_head(2), CLASSES, ONE),
        "classes": (multi, columns, THREE),
        "words": (learn.multi_class_head(3, label_keys=["a", "b", "c"]), words, THREE),
        "hinge": (learn.binary_svm_head(**weighted), CLASSES, ONE),
        "labels": (learn.multi_label_head(3, metric_class_ids=[1], **weighted), labels, THREE),
        "sparse labels": (learn.multi_label_head(3), lambda: tf.SparseTensor(*sparse), THREE),
        "several": (learn.multi_head(both, [1.0, 2.0, 0.5]), {"a": CLASSES, "b": NUMBERS}, np.hstack([ONE, ONE * 2])),
        "several apart": (learn.multi_head(both), {"a": CLASSES, "b": NUMBERS}, lambda: {"A": ONE, "B": ONE * 2}),
    }


def outcome(tf, head, labels, logits, mode):
    """Loss, predictions, metrics and more that a head makes."""
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.create_global_step()
        made = head.create_model_fn_ops(
            features={"w": tf.constant(WEIGHTS)},
            mode=mode,
            labels=labels() if callable(labels) else labels,
            train_op_fn=lambda loss: step.assign_add(1),
            logits=logits() if callable(logits) else tf.constant(logits),
        )
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        found = {}
        if made.loss is not None:
            found["loss"] = session.run(made.loss)
        found["predictions"] = session.run(made.predictions or {})
        metrics = made.eval_metric_ops or {}
        session.run([update for _, update in metrics.values()])
        found["metrics"] = session.run({name: value for name, (value, _) in metrics.items()})
        alternatives = made.output_alternatives or {}
        found["served"] = {name: (kind, session.run(dict(each))) for name, (kind, each) in alternatives.items()}
        if made.train_op is not None:
            session.run(made.train_op)
        found["variables"] = {each.name: session.run(each) for each in tf.global_variables()}
        operations = tf.get_default_graph().get_operations()
        found["summaries"] = sorted(each.name for each in operations if "Summary" in each.type)
        return plain(found)


def plain(value):
    """Values as those of JSON."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    return (
        round(float(value), 5) if isinstance(value, (float, np.floating)) else getattr(value, "item", lambda: value)()
    )


def outcomes(tf):
    """All outcomes, by the names of heads and modes."""
    return {
        f"{name}, {mode}": outcome(tf, *case, mode)
        for name, case in heads(tf).items()
        for mode in ("train", "eval", "infer")
    }


if __name__ == "__main__":
    import tensorflow

    print(json.dumps(outcomes(tensorflow), indent=0))
