"""An input pipeline of queues: threads read record files, parse and shuffle examples, while the model trains.

Run it::

    python examples/input_pipeline.py --local    # in this process
    python examples/input_pipeline.py            # queues and model on a Ray worker, variables on a parameter server
"""

import argparse
import os
import tempfile
from contextlib import ExitStack

import digits

import tfray as tf


def write_records(folder, images, labels, file_count=4):
    """Write the examples to TFRecord files, as data sets come."""
    paths = [os.path.join(folder, f"train-{i}.tfrecord") for i in range(file_count)]
    for i, path in enumerate(paths):
        with tf.python_io.TFRecordWriter(path) as writer:
            for image, label in zip(images[i::file_count], labels[i::file_count], strict=True):
                feature = {
                    "image": tf.train.Feature(float_list=tf.train.FloatList(value=image)),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return paths


def read_batches(paths, epochs):
    """Shuffled batches of images and labels, until every record was read `epochs` times."""
    names = tf.train.string_input_producer(paths, num_epochs=epochs, seed=0)
    # A step of a runner's thread reads many records: one by one, the steps would cost more than the records.
    _, records = tf.TFRecordReader().read_up_to(names, 60)
    features = {"image": tf.FixedLenFeature([64], tf.float32), "label": tf.FixedLenFeature([], tf.int64)}
    examples = tf.parse_example(records, features)
    return tf.train.shuffle_batch(
        [examples["image"], tf.cast(examples["label"], tf.int32)],
        digits.BATCH_SIZE,
        capacity=1000,
        min_after_dequeue=500,
        num_threads=2,
        seed=0,
        enqueue_many=True,
    )


def train(session, spec):
    """Train until the input ends. Returns the number of steps."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    steps = 0
    try:
        while not coord.should_stop():
            _, loss = session.run([spec.train_op, spec.loss])
            steps += 1
            if steps % 20 == 0:
                print(f"step {steps}: loss {loss:.4f}")
    except tf.errors.OutOfRangeError:
        print(f"the input has ended after {steps} steps")
    finally:
        coord.request_stop()
    coord.join(threads)
    return steps


def main():
    """Parse the command line, and train in this process or on a cluster."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--local", action="store_true", help="run in this process, without Ray")
    parser.add_argument("--address", help="where Ray is: local, auto or HOST:PORT")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()

    tf.set_random_seed(0)
    (images, labels), (test_images, test_labels) = digits.load()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        paths = write_records(folder, images, labels)
        with tf.device(None if options.local else tf.train.replica_device_setter(ps_tasks=1)):
            batch_images, batch_labels = read_batches(paths, options.epochs)
            logits = tf.layers.dense(tf.layers.dense(batch_images, 64, tf.nn.relu), 10)
            spec = digits.classifier(logits, batch_labels, tf.train.MomentumOptimizer(0.1, momentum=0.9))
        jobs = {"ps": 1, "worker": 1}
        target = "" if options.local else stack.enter_context(tf.Cluster(jobs, options.address))
        session = stack.enter_context(tf.Session(target))
        train(session, spec)
        # What is fed is not taken from the queue.
        fed = {batch_images: test_images[: digits.BATCH_SIZE], batch_labels: test_labels[: digits.BATCH_SIZE]}
        print(f"test accuracy {session.run(spec.metrics['accuracy'], fed):.4f}")


if __name__ == "__main__":
    main()
