"""A convolutional network with dropout, summaries for TensorBoard, and a checkpoint that is restored to test it."""

import os

import tensorflow as tf
from small_data import write_mnist
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the four files; they are made if need be.")
flags.DEFINE_string("log_dir", "mnist_logs", "Folder for summaries and checkpoints.")
flags.DEFINE_integer("steps", 150, "Training steps.")
flags.DEFINE_float("dropout", 0.8, "Share of activations to keep.")
FLAGS = flags.FLAGS


def weight_variable(shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1), name="weights")


def bias_variable(shape):
    return tf.Variable(tf.constant(0.1, shape=shape), name="biases")


def conv_pool(inputs, channels, name):
    with tf.name_scope(name):
        W = weight_variable([5, 5, inputs.get_shape().as_list()[-1], channels])
        conv = tf.nn.relu(tf.nn.conv2d(inputs, W, strides=[1, 1, 1, 1], padding="SAME") + bias_variable([channels]))
        tf.summary.histogram("activations", conv)
        return tf.nn.max_pool(conv, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def main(_):
    mnist = input_data.read_data_sets(write_mnist(FLAGS.data_dir), validation_size=0, seed=0)
    tf.set_random_seed(0)
    x = tf.placeholder(tf.float32, [None, 784], name="x-input")
    y_ = tf.placeholder(tf.int64, [None], name="y-input")
    keep_prob = tf.placeholder(tf.float32, name="keep_prob")
    image = tf.reshape(x, [-1, 28, 28, 1])
    tf.summary.image("input", image, 4)

    hidden = conv_pool(image, 8, "conv1")
    hidden = conv_pool(hidden, 16, "conv2")
    with tf.name_scope("fc1"):
        flat = tf.reshape(hidden, [-1, 7 * 7 * 16])
        hidden = tf.nn.relu(tf.matmul(flat, weight_variable([7 * 7 * 16, 64])) + bias_variable([64]))
        dropped = tf.nn.dropout(hidden, keep_prob)
    with tf.name_scope("fc2"):
        y = tf.matmul(dropped, weight_variable([64, 10])) + bias_variable([10])

    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=y_, logits=y)
    tf.summary.scalar("cross_entropy", cross_entropy)
    train_step = tf.train.AdamOptimizer(2e-3).minimize(cross_entropy)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(y, 1), y_), tf.float32))
    tf.summary.scalar("accuracy", accuracy)

    merged = tf.summary.merge_all()
    saver = tf.train.Saver()
    with tf.Session() as sess:
        train_writer = tf.summary.FileWriter(os.path.join(FLAGS.log_dir, "train"), sess.graph)
        sess.run(tf.global_variables_initializer())
        for i in range(FLAGS.steps):
            xs, ys = mnist.train.next_batch(50)
            summary, _ = sess.run([merged, train_step], {x: xs, y_: ys, keep_prob: FLAGS.dropout})
            if i % 10 == 0:
                train_writer.add_summary(summary, i)
        saver.save(sess, os.path.join(FLAGS.log_dir, "model.ckpt"), FLAGS.steps)
        train_writer.close()

    with tf.Session() as sess:
        saver.restore(sess, tf.train.latest_checkpoint(FLAGS.log_dir))
        test = {x: mnist.test.images, y_: mnist.test.labels, keep_prob: 1.0}
        print("test accuracy %.3f" % sess.run(accuracy, test))


if __name__ == "__main__":
    tf.app.run()
