"""Asynchronous replicas in processes of their own, as older TensorFlow 1 programs write them, with a Supervisor.

Run it, also with `import tensorflow as tf` in place of `import tfray as tf`::

    tfray launch --ps 2 --workers 3 examples/between_graph_async.py -- --train_steps=300

Each worker applies its gradients to the variables on the parameter servers as it goes, and waits for nobody.
"""

import argparse
import sys
import time

import numpy as np

import tfray as tf

FLAGS = None


def linear_data(count, seed):
    """Points in 20 dimensions, and noisy values of one linear function of them."""
    weights = np.random.RandomState(0).randn(20, 1)
    random = np.random.RandomState(seed)
    points = random.randn(count, 20)
    values = points.dot(weights) + 0.5 + 0.1 * random.randn(count, 1)
    return points.astype(np.float32), values.astype(np.float32)


def main(_):
    ps_hosts = FLAGS.ps_hosts.split(",")
    worker_hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return

    is_chief = FLAGS.task_index == 0
    worker = f"/job:worker/task:{FLAGS.task_index}"
    device = tf.train.replica_device_setter(worker_device=worker, cluster=cluster)
    with tf.device(device):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        points = tf.placeholder(tf.float32, [None, 20])
        values = tf.placeholder(tf.float32, [None, 1])
        # One part of the weights on each parameter server.
        partitioner = tf.fixed_size_partitioner(len(ps_hosts))
        weights = tf.get_variable("weights", [20, 1], partitioner=partitioner, initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        predicted = tf.matmul(points, tf.convert_to_tensor(weights)) + bias
        loss = tf.reduce_mean(tf.square(predicted - values))
        train_op = tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(loss, global_step=global_step)
        init_op = tf.global_variables_initializer()
        saver = tf.train.Saver()

    supervisor = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=FLAGS.logdir or None,
        init_op=init_op,
        saver=saver,
        global_step=global_step,
        recovery_wait_secs=1,
        save_model_secs=60,
    )
    data = linear_data(2000, seed=FLAGS.task_index + 1)
    random = np.random.RandomState(FLAGS.task_index)
    with supervisor.prepare_or_wait_for_session(server.target) as session:
        started, made, first, step = time.time(), 0, 0.0, 0
        while not supervisor.should_stop() and step < FLAGS.train_steps:
            batch = random.choice(2000, 50)
            _, value, step = session.run(
                [train_op, loss, global_step], {points: data[0][batch], values: data[1][batch]}
            )
            first = first if made else value
            made += 1
        took = time.time() - started
        final = session.run(loss, {points: data[0], values: data[1]})
        print(f"{made} steps in {took:.1f} s, loss {first:.3f} -> {final:.3f}")
        print(f"global step {session.run(global_step)}")
    supervisor.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", default="", help="Addresses of the parameter servers, separated by commas")
    parser.add_argument("--worker_hosts", default="", help="Addresses of the workers, separated by commas")
    parser.add_argument("--job_name", default="worker", choices=["ps", "worker"], help="Job of this process")
    parser.add_argument("--task_index", type=int, default=0, help="Index of this process in its job")
    parser.add_argument("--train_steps", type=int, default=300, help="Global step at which to end")
    parser.add_argument("--learning_rate", type=float, default=0.02, help="Learning rate")
    parser.add_argument("--logdir", default="", help="Folder of checkpoints; none are saved without it")
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0], *unparsed])
