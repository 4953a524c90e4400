"""A variational autoencoder of handwritten digits, with `tf.contrib.layers` and the distributions of TensorFlow."""

import numpy as np
import tensorflow as tf
from small_data import write_mnist
from tensorflow.contrib.layers import fully_connected, xavier_initializer
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the four files; they are made if need be.")
flags.DEFINE_integer("steps", 200, "Training steps.")
flags.DEFINE_integer("latent", 4, "Numbers that stand for an image.")
FLAGS = flags.FLAGS


class VariationalAutoencoder:
    def __init__(self, n_input, n_hidden, n_latent, optimizer):
        self.x = tf.placeholder(tf.float32, [None, n_input])
        with tf.variable_scope("encoder"):
            hidden = fully_connected(self.x, n_hidden, weights_initializer=xavier_initializer())
            self.z_mean = fully_connected(hidden, n_latent, activation_fn=None)
            self.z_log_sigma_sq = fully_connected(hidden, n_latent, activation_fn=None)
        posterior = tf.distributions.Normal(self.z_mean, tf.exp(0.5 * self.z_log_sigma_sq))
        prior = tf.distributions.Normal(0.0, 1.0)
        self.z = posterior.sample(seed=1)
        with tf.variable_scope("decoder"):
            hidden = fully_connected(self.z, n_hidden)
            logits = fully_connected(hidden, n_input, activation_fn=None)
        self.reconstruction = tf.nn.sigmoid(logits)
        likelihood = -tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=self.x, logits=logits), 1)
        divergence = tf.reduce_sum(tf.distributions.kl_divergence(posterior, prior), 1)
        self.cost = tf.reduce_mean(divergence - likelihood)
        self.optimizer = optimizer.minimize(self.cost)
        self.sess = tf.Session()
        self.sess.run(tf.global_variables_initializer())

    def partial_fit(self, X):
        cost, _ = self.sess.run((self.cost, self.optimizer), feed_dict={self.x: X})
        return cost

    def calc_total_cost(self, X):
        return self.sess.run(self.cost, feed_dict={self.x: X})

    def generate(self, hidden):
        return self.sess.run(self.reconstruction, feed_dict={self.z: hidden})


def main(_):
    mnist = input_data.read_data_sets(write_mnist(FLAGS.data_dir), validation_size=0, seed=0)
    tf.set_random_seed(0)
    model = VariationalAutoencoder(784, 128, FLAGS.latent, tf.train.AdamOptimizer(2e-3))
    print("cost before %.1f" % model.calc_total_cost(mnist.test.images))
    for _ in range(FLAGS.steps):
        model.partial_fit(mnist.train.next_batch(100)[0])
    print("cost after %.1f" % model.calc_total_cost(mnist.test.images))
    image = model.generate(np.zeros([1, FLAGS.latent], np.float32)).reshape(28, 28)
    for row in image[::3, ::2]:
        print("".join(" .:*#"[min(int(pixel * 5), 4)] for pixel in row))


if __name__ == "__main__":
    tf.app.run()
