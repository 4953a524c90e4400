"""Train on a model whose program is lost: its meta graph and its checkpoint, by TensorFlow 1 or tfray, are enough.

Run it::

    python examples/finetune_meta_graph.py --workers 3 --ps 2
    tfray run examples/finetune_meta_graph.py:build --workers 3 --ps 2 model=models/digits-10

``model`` is the path of a checkpoint beside which stands its ``.meta``; ``tfray inspect models/digits-10.meta`` tells
the names in it. Without one, a small model is made first, which has seen few digits.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import digits

import tfray as tf
from tfray import cli


def little_trained(folder: Path) -> str:
    """Train a perceptron on 200 digits only, and save it as TensorFlow's files. Returns the checkpoint's path."""
    (images, labels), _ = digits.load()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        image = tf.placeholder(tf.float32, [None, 64], name="image")
        label = tf.placeholder(tf.int32, [None], name="label")
        logits = tf.identity(tf.layers.dense(tf.layers.dense(image, 48, tf.nn.relu), 10), name="logits")
        step = tf.train.AdamOptimizer(0.01).minimize(tf.losses.sparse_softmax_cross_entropy(label, logits))
        session.run(tf.global_variables_initializer())
        for _ in range(20):
            session.run(step, {image: images[:200], label: labels[:200]})
        return tf.train.Saver(write_format="tensorflow").save(session, str(folder / "digits"), 20)


def build(
    model: str = "",
    image: str = "image:0",
    logits: str = "logits:0",
    learning_rate: float = 0.02,
    steps: int = 100,
):
    """Take up the graph of `model`, begin with its weights, and train it on handwritten digits.

    Args:
        model: Path of the checkpoint.
        image: The tensor of the graph that takes images, ``[count, 64]``.
        logits: The tensor that tells the ten classes apart.
        learning_rate: Step of stochastic gradient descent with momentum.
        steps: Number of steps.
    """
    path = model or little_trained(Path(tempfile.mkdtemp()))

    def taken_up(images, labels):
        # The graph's own placeholder gives way to the batch, and its devices to those of this run: the parameter
        # servers for variables, each replica's for the rest.
        tf.train.import_meta_graph(f"{path}.meta", clear_devices=True, input_map={image: images})
        tf.train.init_from_checkpoint(path, {"/": "/"})
        outputs = tf.get_default_graph().get_tensor_by_name(logits)
        return digits.classifier(outputs, labels, tf.train.MomentumOptimizer(learning_rate, 0.9))

    return digits.trainer(taken_up, steps)


if __name__ == "__main__":
    cli.train(build)
