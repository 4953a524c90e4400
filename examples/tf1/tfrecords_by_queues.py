"""Digits in TFRecord files, read by queues and threads, for a network of `tf.contrib.slim`."""

import os

import tensorflow as tf
import tensorflow.contrib.slim as slim
from small_data import digits

flags = tf.app.flags
flags.DEFINE_string("directory", "digit_records", "Folder of the files.")
flags.DEFINE_integer("num_epochs", 4, "How often they are read.")
flags.DEFINE_integer("batch_size", 50, "Examples in a step.")
FLAGS = flags.FLAGS


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def convert_to(images, labels, name):
    filename = os.path.join(FLAGS.directory, name + ".tfrecords")
    with tf.python_io.TFRecordWriter(filename) as writer:
        for image, label in zip(images, labels, strict=True):
            features = {"label": _int64_feature(int(label)), "image_raw": _bytes_feature(image.tobytes())}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    return filename


def read_and_decode(filename_queue):
    reader = tf.TFRecordReader()
    _, serialized_example = reader.read(filename_queue)
    features = tf.parse_single_example(
        serialized_example,
        features={"image_raw": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)},
    )
    image = tf.decode_raw(features["image_raw"], tf.uint8)
    image.set_shape([784])
    return tf.cast(image, tf.float32) * (1.0 / 255) - 0.5, tf.cast(features["label"], tf.int32)


def inputs(filenames, num_epochs, shuffle):
    with tf.name_scope("input"):
        filename_queue = tf.train.string_input_producer(filenames, num_epochs=num_epochs, shuffle=shuffle)
        image, label = read_and_decode(filename_queue)
        if not shuffle:
            return tf.train.batch([image, label], FLAGS.batch_size, allow_smaller_final_batch=True)
        return tf.train.shuffle_batch(
            [image, label], FLAGS.batch_size, capacity=1000, num_threads=2, min_after_dequeue=300
        )


def network(images, reuse=None):
    with slim.arg_scope([slim.fully_connected], weights_regularizer=slim.l2_regularizer(1e-4)):
        net = slim.stack(images, slim.fully_connected, [64, 32], scope="hidden", reuse=reuse)
        return slim.fully_connected(net, 10, activation_fn=None, scope="logits", reuse=reuse)


def main(_):
    tf.gfile.MakeDirs(FLAGS.directory)
    images, labels = digits()
    train_files = [convert_to(images[start::2][150:], labels[start::2][150:], "train%d" % start) for start in (0, 1)]
    test_file = convert_to(images[:300], labels[:300], "test")

    tf.set_random_seed(0)
    train_images, train_labels = inputs(train_files, FLAGS.num_epochs, shuffle=True)
    tf.losses.sparse_softmax_cross_entropy(labels=train_labels, logits=network(train_images))
    loss = tf.losses.get_total_loss()
    train_op = tf.train.AdamOptimizer(3e-3).minimize(loss)
    test_images, test_labels = inputs([test_file], 1, shuffle=False)
    correct = tf.reduce_sum(tf.to_int32(tf.nn.in_top_k(network(test_images, reuse=True), test_labels, 1)))

    with tf.Session() as sess:
        sess.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        step = 0
        try:
            while not coord.should_stop():
                _, value = sess.run([train_op, loss])
                step += 1
        except tf.errors.OutOfRangeError:
            print("done training for %d epochs, %d steps, loss %.3f" % (FLAGS.num_epochs, step, value))
        right = 0
        try:
            while True:
                right += sess.run(correct)
        except tf.errors.OutOfRangeError:
            print("test accuracy %.3f" % (right / 300.0))
        finally:
            coord.request_stop()
        coord.join(threads)


if __name__ == "__main__":
    tf.app.run()
