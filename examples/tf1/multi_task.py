"""Two tasks with one trunk: which digit an image shows, and whether it is odd. Flags say which tasks are learned."""

import numpy as np
import tensorflow as tf
from small_data import digits
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops, control_flow_ops, math_ops, nn_ops
from tensorflow.python.platform import tf_logging as logging

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("tasks", "digit,odd", "Tasks, by commas.")
tf.app.flags.DEFINE_integer("steps", 300, "Training steps.")
tf.app.flags.DEFINE_bool("shuffle", True, "Whether the order is one of chance.")


def head(name, trunk, labels, classes):
    with tf.variable_scope(name), ops.name_scope("head"):
        logits = tf.layers.dense(trunk, classes, kernel_regularizer=tf.contrib.layers.l2_regularizer(1e-4))
        loss = math_ops.reduce_mean(nn_ops.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels))
        accuracy, update = tf.metrics.accuracy(labels, math_ops.argmax(logits, 1), name="accuracy")
        return loss, accuracy, update


def main(argv):
    del argv
    logging.set_verbosity(logging.INFO)
    tasks = FLAGS.tasks.split(",")
    pixels, numbers = digits()
    pixels = pixels.reshape([len(pixels), -1]).astype(np.float32) / 255
    tf.set_random_seed(0)
    images = tf.placeholder_with_default(np.zeros([1, 784], np.float32), [None, 784])
    labels = tf.placeholder(tf.int64, [None])
    trunk = tf.layers.dense(images, 64, tf.nn.relu, name="trunk")
    known = {"digit": (labels, 10), "odd": (labels % 2, 2)}
    heads = {task: head(task, trunk, *known[task]) for task in tasks}

    losses = array_ops.stack([loss for loss, _, _ in heads.values()]) if heads else None
    total = math_ops.reduce_sum(losses) + tf.losses.get_regularization_loss()
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.RMSPropOptimizer(1e-3).minimize(total, step)
    with_step = control_flow_ops.with_dependencies([train_op], total)
    updates = [update for _, _, update in heads.values()]

    random = np.random.RandomState(0)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for i in range(FLAGS.steps):
            chosen = 300 + (random.randint(len(pixels) - 300, size=60) if FLAGS.shuffle else np.arange(60))
            value = sess.run(with_step, {images: pixels[chosen], labels: numbers[chosen]})
            logging.log_every_n(logging.INFO, "step %d loss %.3f", 100, i, value)
        for start in range(0, 300, 100):
            part = slice(start, start + 100)
            sess.run(updates, {images: pixels[part], labels: numbers[part]})
        for task, (_, accuracy, _) in heads.items():
            print("%s accuracy %.3f" % (task, sess.run(accuracy)))


if __name__ == "__main__":
    tf.app.run(main)
