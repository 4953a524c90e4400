"""A perceptron on a Ray dataset: its rows are prepared by Ray's tasks, and shared by the replicas as they ask for them.

Run it::

    python examples/ray_data.py --workers 2

In place of `ray.data.from_items`, any source of Ray Data will do, such as `ray.data.read_parquet("s3://...")`. It needs
Ray Data: ``pip install 'tfray[data,examples]'``.
"""

import argparse

import digits
import mlp
import ray

import tfray as tf


def rows(images, labels):
    """A dataset with the columns ``image`` and ``label``, whose pixels are scaled where they are read."""
    items = [{"image": image * 16, "label": label} for image, label in zip(images, labels, strict=True)]
    return ray.data.from_items(items).map_batches(lambda batch: {**batch, "image": batch["image"] / 16})


def model(images, labels):
    """A perceptron with one hidden layer."""
    layer = tf.nn.relu(mlp.dense(images, 128, "hidden"))
    return digits.classifier(mlp.dense(layer, 10, "output"), labels, tf.train.AdamOptimizer(0.003))


def main() -> None:
    """Train, and print how well it does on images that it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="number of replicas")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the dataset")
    parser.add_argument("--address", default=None, help="Ray's address, as for `ray.init`; by default one is started")
    arguments = parser.parse_args()
    if not ray.is_initialized():
        ray.init(arguments.address)
    train, test = digits.load()
    trainer = tf.train.Trainer(
        model,
        tf.train.ray_input("image", "label", batch_size=digits.BATCH_SIZE, epochs=arguments.epochs),
        tf.train.ScalingConfig(arguments.workers, cpus_per_worker=0.5),  # the rest is for Ray Data
        tf.train.RunConfig(steps=10_000, seed=0),
        datasets={"train": rows(*train)},
    )
    result = trainer.fit()
    print(f"{len(result.history)} steps, test accuracy {trainer.evaluate(result, [test])['accuracy']:.4f}")


if __name__ == "__main__":
    main()
