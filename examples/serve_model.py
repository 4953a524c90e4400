"""Train a convnet on handwritten digits, export it, and serve it with Ray Serve, batching concurrent requests.

``python examples/serve_model.py`` serves until Ctrl-C; ask it with

    curl -X POST localhost:8000/digits -H 'Content-Type: application/json' -d '{"image": [0.0, 0.5, ...]}'  # 64 numbers

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
        tf.saved_model.export(session, folder, {"image": image}, {"scores": scores})
    return test_images, expected


@serve.deployment
class Digits:
    """Answers ``{"image": [64 numbers]}`` with ``{"digit": ..., "scores": [...]}``.

    Args:
        folder: The exported model, which every node must see.
    """

    def __init__(self, folder: str) -> None:
        self._model = tf.saved_model.load_model(folder)

    @serve.batch(max_batch_size=MAX_BATCH, batch_wait_timeout_s=BATCH_WAIT_S)
    async def scores(self, images: list[Any]) -> list[Any]:
        """The scores of several images, whoever asked for them, in one step."""
        return list(self._model(np.stack(images))["scores"])

    async def __call__(self, request: Any) -> Any:
        """Answer one request over HTTP."""
        from starlette.responses import JSONResponse

        try:
            image = np.asarray((await request.json())["image"], np.float32).reshape(64)
        except (KeyError, TypeError, ValueError) as error:
            return JSONResponse({"error": f"expected {{'image': [64 numbers]}}: {error}"}, status_code=400)
        scores = await self.scores(image)
        return {"digit": int(scores.argmax()), "scores": scores.tolist()}


def main() -> None:
    """Train, export and serve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--folder", help="where the model goes; a temporary folder without it")
    options = parser.parse_args()
    folder = options.folder or str(Path(tempfile.mkdtemp()) / "digits")
    train_and_export(folder, options.steps)
    serve.run(Digits.bind(folder), name="digits", route_prefix="/digits", blocking=True)


if __name__ == "__main__":
    main()
