"""A perceptron under `MonitoredTrainingSession`: run it again, and it goes on from its checkpoint."""

import tensorflow as tf
from small_data import write_mnist
from tensorflow.contrib.learn.python.learn.datasets import mnist as mnist_dataset
from tensorflow.examples.tutorials.mnist import mnist

flags = tf.app.flags
flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the four files; they are made if need be.")
flags.DEFINE_string("train_dir", "monitored", "Folder of checkpoints and summaries.")
flags.DEFINE_integer("max_steps", 200, "Steps, over all runs.")
FLAGS = flags.FLAGS


class _LoggerHook(tf.train.SessionRunHook):
    def begin(self):
        self.losses = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs("loss:0")

    def after_run(self, run_context, run_values):
        self.losses.append(run_values.results)

    def end(self, session):
        print("trained %d steps in this run, the last loss is %.3f" % (len(self.losses), self.losses[-1]))


def main(argv=None):
    data_sets = mnist_dataset.read_data_sets(write_mnist(FLAGS.data_dir), validation_size=0, seed=0)
    with tf.Graph().as_default():
        tf.set_random_seed(0)
        global_step = tf.train.get_or_create_global_step()
        dataset = tf.data.Dataset.from_tensor_slices((data_sets.train.images, data_sets.train.labels))
        dataset = dataset.shuffle(2000, seed=0).repeat().batch(100)
        images, labels = dataset.make_one_shot_iterator().get_next()
        images.set_shape([None, mnist.IMAGE_PIXELS])
        logits = mnist.inference(images, 64, 32)
        loss = tf.identity(mnist.loss(logits, labels), name="loss")
        tf.summary.scalar("loss", loss)
        rate = tf.train.exponential_decay(0.3, global_step, 100, 0.9, staircase=True)
        averages = tf.train.ExponentialMovingAverage(0.95, global_step)
        step_op = tf.train.MomentumOptimizer(rate, 0.5).minimize(loss, global_step=global_step)
        with tf.control_dependencies([step_op]):
            train_op = averages.apply(tf.trainable_variables())
        correct = mnist.evaluation(logits, tf.to_int32(labels))

        hooks = [tf.train.StopAtStepHook(last_step=FLAGS.max_steps), tf.train.NanTensorHook(loss), _LoggerHook()]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=FLAGS.train_dir,
            hooks=hooks,
            save_checkpoint_secs=None,
            save_checkpoint_steps=50,
            save_summaries_steps=20,
            config=tf.ConfigProto(log_device_placement=False),
        ) as mon_sess:
            while not mon_sess.should_stop():
                mon_sess.run(train_op)

        # The averages of the weights take the weights' places to test.
        saver = tf.train.Saver(averages.variables_to_restore())
        with tf.Session() as sess:
            checkpoint = tf.train.get_checkpoint_state(FLAGS.train_dir)
            saver.restore(sess, checkpoint.model_checkpoint_path)
            step = checkpoint.model_checkpoint_path.split("/")[-1].split("-")[-1]
            test = {images: data_sets.test.images, labels: data_sets.test.labels}
            right = sess.run(correct, feed_dict=test)
            print("step %s test accuracy %.3f" % (step, right / float(data_sets.test.num_examples)))


if __name__ == "__main__":
    tf.app.run()
