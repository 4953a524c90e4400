"""Serve an exported model with Ray Serve, batching concurrent requests.

``python examples/serve_model.py --model FOLDER`` serves any saved model of tfray or TensorFlow until Ctrl-C. Without a
folder, a convnet is trained on handwritten digits and exported first. Ask it with

    curl -X POST localhost:8000/ -H 'Content-Type: application/json' -d '{"image": [0.0, 0.5, ...]}'  # 64 numbers

Needs ``pip install 'tfray[examples,serve]'``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from digits import load
from ray import serve

import tfray as tf

MAX_BATCH = 32
BATCH_WAIT_S = 0.005


def train_and_export(folder: str | Path, steps: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Train the convnet and export it, frozen. Returns images, and the scores that the training graph gives them."""
    (images, labels), (test_images, test_labels) = load()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        image = tf.placeholder(tf.float32, [None, 64], name="image")
        label = tf.placeholder(tf.int32, [None], name="label")
        hidden = tf.layers.conv2d(tf.reshape(image, [-1, 8, 8, 1]), 16, 3, activation=tf.nn.relu)
        hidden = tf.layers.flatten(tf.layers.max_pooling2d(hidden, 2, 2))
        logits = tf.layers.dense(hidden, 10)
        scores = tf.nn.softmax(logits, name="scores")
        loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
        step = tf.train.AdamOptimizer(0.01).minimize(loss)
        session.run(tf.global_variables_initializer())
        random = np.random.default_rng(0)
        for _ in range(steps):
            chosen = random.choice(len(labels), 100)
            session.run(step, {image: images[chosen], label: labels[chosen]})
        expected = session.run(scores, {image: test_images})
        print(f"test accuracy {np.mean(expected.argmax(1) == test_labels):.3f}")
        tf.saved_model.export(session, folder, {"image": image}, {"digit": tf.argmax(scores, 1), "scores": scores})
    return test_images, expected


def plain(values: np.ndarray) -> Any:
    """An array as JSON has it: nested lists, and text in place of bytes."""
    return (np.vectorize(bytes.decode, otypes=[object])(values) if values.dtype == object else values).tolist()


@serve.deployment
class Model:
    """Answers ``{input: value, ...}``, the inputs of one example, with ``{output: value, ...}``.

    Args:
        folder: The saved model, which every node must see. The first dimension of each input and output of its
            signature counts examples.
    """

    def __init__(self, folder: str) -> None:
        self._model = tf.saved_model.load_model(folder)

    @serve.batch(max_batch_size=MAX_BATCH, batch_wait_timeout_s=BATCH_WAIT_S)
    async def outputs(self, examples: list[dict[str, np.ndarray]]) -> list[dict[str, Any]]:
        """The outputs for several examples, whoever asked for them, in one step."""
        found = self._model(**{name: np.stack([each[name] for each in examples]) for name in self._model.inputs})
        return [{name: plain(values[i]) for name, values in found.items()} for i in range(len(examples))]

    def example(self, request: dict[str, Any]) -> dict[str, np.ndarray]:
        """The inputs in a request. Raises `ValueError` unless it has just the model's inputs, in their shapes."""
        if not isinstance(request, dict) or set(request) != set(self._model.inputs):
            raise ValueError(f"expected {', '.join(self._model.inputs)}")
        found = {}
        for name, info in self._model.inputs.items():
            found[name] = np.asarray(request[name], tf.as_dtype(info.dtype).as_numpy_dtype)
            shape = tf.TensorShape(info.tensor_shape)[1:]
            if not shape.is_compatible_with(found[name].shape):
                raise ValueError(f"expected {name} of shape {shape}, not {found[name].shape}")
        return found

    async def __call__(self, request: Any) -> Any:
        """Answer one request over HTTP."""
        from starlette.responses import JSONResponse

        try:
            example = self.example(await request.json())
        except (TypeError, ValueError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return await self.outputs(example)


def main() -> None:
    """Serve a model, which is trained and exported first if none is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="the folder of a saved model")
    parser.add_argument("--steps", type=int, default=100, help="steps of training, without a folder")
    options = parser.parse_args()
    folder = options.model
    if folder is None:
        folder = str(Path(tempfile.mkdtemp()) / "digits")
        train_and_export(folder, options.steps)
    serve.run(Model.bind(folder), name="model", blocking=True)


if __name__ == "__main__":
    main()
