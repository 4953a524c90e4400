"""Synchronous replicas in processes of their own, as TensorFlow 1 programs write them.

Run it, also with `import tensorflow as tf` in place of `import tfray as tf`::

    tfray launch --ps 2 --workers 3 examples/between_graph_sync.py -- --train_steps=200

Each worker builds the graph of one replica; the variables live on the parameter servers. An update takes the mean of
the gradients of all workers but `backup_workers`.
"""

import digits
import numpy as np

import tfray as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "Addresses of the parameter servers, separated by commas")
flags.DEFINE_string("worker_hosts", "", "Addresses of the workers, separated by commas")
flags.DEFINE_string("job_name", "worker", "Job of this process: ps or worker")
flags.DEFINE_integer("task_index", 0, "Index of this process in its job")
flags.DEFINE_integer("train_steps", 200, "Number of updates")
flags.DEFINE_integer("batch_size", 40, "Examples of one worker in a step")
flags.DEFINE_integer("backup_workers", 0, "Workers that an update does not wait for")
flags.DEFINE_integer("hidden_units", 64, "Units of the hidden layer")
flags.DEFINE_float("learning_rate", 0.005, "Learning rate of Adam")
flags.DEFINE_string("checkpoint_dir", "", "Folder of checkpoints; none are saved without it")
FLAGS = flags.FLAGS


def build_model(images, labels):
    """A perceptron with one hidden layer: its loss and its accuracy."""
    hidden = tf.layers.dense(images, FLAGS.hidden_units, activation=tf.nn.relu, name="hidden")
    logits = tf.layers.dense(hidden, 10, name="output")
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    correct = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    return loss, tf.reduce_mean(tf.cast(correct, tf.float32))


def train(server, cluster, num_workers):
    """The worker's part: build the graph, and run it until the global step is reached."""
    is_chief = FLAGS.task_index == 0
    worker = f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int32, [None])
        loss, accuracy = build_model(images, labels)
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.AdamOptimizer(FLAGS.learning_rate),
            replicas_to_aggregate=num_workers - FLAGS.backup_workers,
            total_num_replicas=num_workers,
        )
        train_op = optimizer.minimize(loss, global_step=global_step)
    train_set, test_set = digits.load()
    test = tf.train.FinalOpsHook(accuracy, {images: test_set[0], labels: test_set[1]})
    # Without tokens to begin with, no worker makes two steps for one update.
    hooks = [
        optimizer.make_session_run_hook(is_chief, num_tokens=0),
        tf.train.StopAtStepHook(last_step=FLAGS.train_steps),
    ]
    config = tf.ConfigProto(device_filters=["/job:ps", worker])

    random = np.random.RandomState(FLAGS.task_index)
    losses = []
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=FLAGS.checkpoint_dir or None,
        hooks=hooks,
        chief_only_hooks=[test],
        config=config,
        stop_grace_period_secs=10,
    ) as session:
        step = 0
        while not session.should_stop():
            batch = random.choice(len(train_set[1]), FLAGS.batch_size)
            feed = {images: train_set[0][batch], labels: train_set[1][batch]}
            _, value, step = session.run([train_op, loss, global_step], feed)
            losses.append(value)
            if len(losses) % 50 == 0:
                print(f"global step {step}: loss {value:.3f}")
    print(f"{len(losses)} steps, loss {np.mean(losses[:10]):.3f} -> {np.mean(losses[-10:]):.3f}")
    if is_chief:
        print(f"test accuracy {test.final_ops_values:.3f}")


def main(_):
    ps_hosts = FLAGS.ps_hosts.split(",")
    worker_hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        train(server, cluster, len(worker_hosts))


if __name__ == "__main__":
    tf.app.run()
