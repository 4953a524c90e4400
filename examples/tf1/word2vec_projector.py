"""Skip-grams with noise-contrastive estimation; TensorBoard's projector draws the words that it has learned."""

import collections
import os
import re

import numpy as np
import tensorflow as tf
from small_data import TEXT
from tensorflow.contrib.tensorboard.plugins import projector

tf.app.flags.DEFINE_string("log_dir", "word2vec_logs", "Folder for the projector.")
tf.app.flags.DEFINE_integer("steps", 400, "Training steps.")
tf.app.flags.DEFINE_integer("embedding_size", 16, "Length of a word's vector.")
FLAGS = tf.app.flags.FLAGS


def build_dataset(words):
    count = collections.Counter(words).most_common()
    dictionary = {word: number for number, (word, _) in enumerate(count)}
    return [dictionary[word] for word in words], [word for word, _ in count]


def skip_grams(data, window):
    pairs = [(data[i], data[j]) for i in range(len(data)) for j in range(i - window, i + window + 1)
             if 0 <= j < len(data) and i != j]  # fmt: skip
    centers, contexts = zip(*pairs, strict=True)
    return np.array(centers, np.int32), np.array(contexts, np.int32)[:, np.newaxis]


def main(_):
    data, reverse_dictionary = build_dataset(re.findall(r"[a-z]+", TEXT.lower()))
    vocabulary_size = len(reverse_dictionary)
    centers, contexts = skip_grams(data, 2)

    graph = tf.Graph()
    with graph.as_default(), tf.device("/cpu:0"):
        tf.set_random_seed(0)
        train_inputs = tf.placeholder(tf.int32, shape=[None])
        train_labels = tf.placeholder(tf.int32, shape=[None, 1])
        embeddings = tf.Variable(
            tf.random_uniform([vocabulary_size, FLAGS.embedding_size], -1.0, 1.0), name="embeddings"
        )
        embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        nce_weights = tf.Variable(
            tf.truncated_normal([vocabulary_size, FLAGS.embedding_size], stddev=1.0 / np.sqrt(FLAGS.embedding_size))
        )
        nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
        loss = tf.reduce_mean(
            tf.nn.nce_loss(
                weights=nce_weights,
                biases=nce_biases,
                labels=train_labels,
                inputs=embed,
                num_sampled=8,
                num_classes=vocabulary_size,
            )
        )
        optimizer = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
        normalized = embeddings / norm
        similarity = tf.matmul(normalized, normalized, transpose_b=True)
        init = tf.global_variables_initializer()
        saver = tf.train.Saver()

    with tf.Session(graph=graph) as session:
        session.run(init)
        random = np.random.RandomState(0)
        losses = []
        for _ in range(FLAGS.steps):
            chosen = random.randint(len(centers), size=64)
            _, value = session.run([optimizer, loss], {train_inputs: centers[chosen], train_labels: contexts[chosen]})
            losses.append(value)
        print("loss fell from %.3f to %.3f" % (np.mean(losses[:20]), np.mean(losses[-20:])))
        for i in range(3):
            nearest = session.run(similarity)[i].argsort()[::-1][1:5]
            print("nearest to %s: %s" % (reverse_dictionary[i], ", ".join(reverse_dictionary[j] for j in nearest)))

        writer = tf.summary.FileWriter(FLAGS.log_dir, graph)
        saver.save(session, os.path.join(FLAGS.log_dir, "model.ckpt"))
        with tf.gfile.GFile(os.path.join(FLAGS.log_dir, "metadata.tsv"), "w") as file:
            file.write("\n".join(reverse_dictionary) + "\n")
        config = projector.ProjectorConfig()
        embedding = config.embeddings.add()
        embedding.tensor_name = embeddings.name
        embedding.metadata_path = "metadata.tsv"
        projector.visualize_embeddings(writer, config)
        writer.close()


if __name__ == "__main__":
    tf.app.run()
