"""A generative adversarial network: two networks with optimizers of their own, and `reuse` of the discriminator."""

import numpy as np
import tensorflow as tf
from small_data import write_mnist
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the four files; they are made if need be.")
flags.DEFINE_integer("steps", 300, "Training steps.")
flags.DEFINE_integer("z_dim", 16, "Random numbers behind an image.")
FLAGS = flags.FLAGS


def generator(z):
    with tf.variable_scope("generator"):
        hidden = tf.layers.dense(z, 64, activation=tf.nn.leaky_relu)
        hidden = tf.layers.batch_normalization(hidden, training=True, momentum=0.9)
        return tf.layers.dense(hidden, 784, activation=tf.nn.sigmoid)


def discriminator(x, reuse=None):
    with tf.variable_scope("discriminator", reuse=reuse):
        hidden = tf.layers.dense(x, 64, activation=tf.nn.leaky_relu)
        return tf.layers.dense(hidden, 1)


def cross_entropy(logits, label):
    labels = tf.fill(tf.shape(logits), label)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))


def main(_):
    mnist = input_data.read_data_sets(write_mnist(FLAGS.data_dir), validation_size=0, seed=0)
    tf.set_random_seed(0)
    X = tf.placeholder(tf.float32, shape=[None, 784], name="X")
    Z = tf.placeholder(tf.float32, shape=[None, FLAGS.z_dim], name="Z")
    G_sample = generator(Z)
    D_real, D_fake = discriminator(X), discriminator(G_sample, reuse=True)
    D_loss = cross_entropy(D_real, 0.9) + cross_entropy(D_fake, 0.0)
    G_loss = cross_entropy(D_fake, 1.0)

    theta_D = [var for var in tf.trainable_variables() if var.name.startswith("discriminator")]
    theta_G = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
    D_solver = tf.train.AdamOptimizer(1e-3, beta1=0.5).minimize(D_loss, var_list=theta_D)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, "generator")):
        G_solver = tf.train.AdamOptimizer(1e-3, beta1=0.5).minimize(G_loss, var_list=theta_G)

    random = np.random.RandomState(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for it in range(FLAGS.steps):
            X_mb, _ = mnist.train.next_batch(64)
            noise = random.uniform(-1.0, 1.0, size=[64, FLAGS.z_dim])
            _, D_now = sess.run([D_solver, D_loss], feed_dict={X: X_mb, Z: noise})
            _, G_now = sess.run([G_solver, G_loss], feed_dict={Z: noise})
            if it % 100 == 0:
                print("step %d: discriminator %.3f, generator %.3f" % (it, D_now, G_now))
        samples = sess.run(G_sample, feed_dict={Z: random.uniform(-1.0, 1.0, size=[500, FLAGS.z_dim])})
    distance = np.sqrt(np.mean((samples.mean(0) - mnist.train.images.mean(0)) ** 2))
    print("mean image differs by %.3f" % distance)


if __name__ == "__main__":
    tf.app.run()
