"""Characters of a text, one after the other: a stacked LSTM whose input comes from a queue, as in the PTB tutorial."""

import numpy as np
import tensorflow as tf
from small_data import TEXT

flags = tf.flags
flags.DEFINE_integer("hidden_size", 64, "Units of each layer.")
flags.DEFINE_integer("num_layers", 2, "Layers.")
flags.DEFINE_integer("num_steps", 16, "Characters over which gradients flow back.")
flags.DEFINE_integer("batch_size", 4, "Parts of the text that are read side by side.")
flags.DEFINE_integer("max_epoch", 30, "How often the text is read.")
FLAGS = flags.FLAGS


def ptb_producer(raw_data, batch_size, num_steps):
    raw_data = tf.convert_to_tensor(raw_data, name="raw_data", dtype=tf.int32)
    data_len = tf.size(raw_data)
    batch_len = data_len // batch_size
    data = tf.reshape(raw_data[0 : batch_size * batch_len], [batch_size, batch_len])
    epoch_size = (batch_len - 1) // num_steps
    with tf.control_dependencies([tf.assert_positive(epoch_size, message="the text is too short")]):
        epoch_size = tf.identity(epoch_size, name="epoch_size")
    i = tf.train.range_input_producer(epoch_size, shuffle=False).dequeue()
    x = tf.strided_slice(data, [0, i * num_steps], [batch_size, (i + 1) * num_steps])
    y = tf.strided_slice(data, [0, i * num_steps + 1], [batch_size, (i + 1) * num_steps + 1])
    x.set_shape([batch_size, num_steps])
    y.set_shape([batch_size, num_steps])
    return x, y


def main(_):
    characters = sorted(set(TEXT))
    numbers = [characters.index(each) for each in TEXT]
    tf.set_random_seed(0)
    inputs, targets = ptb_producer(numbers, FLAGS.batch_size, FLAGS.num_steps)

    with tf.variable_scope("model", initializer=tf.random_uniform_initializer(-0.1, 0.1)):
        embedding = tf.get_variable("embedding", [len(characters), FLAGS.hidden_size])
        embedded = tf.nn.embedding_lookup(embedding, inputs)
        cell = tf.contrib.rnn.MultiRNNCell(
            [tf.contrib.rnn.BasicLSTMCell(FLAGS.hidden_size, forget_bias=1.0) for _ in range(FLAGS.num_layers)]
        )
        initial_state = cell.zero_state(FLAGS.batch_size, tf.float32)
        outputs, final_state = tf.nn.dynamic_rnn(cell, embedded, initial_state=initial_state)
        softmax_w = tf.get_variable("softmax_w", [FLAGS.hidden_size, len(characters)])
        softmax_b = tf.get_variable("softmax_b", [len(characters)])
        logits = tf.tensordot(outputs, softmax_w, 1) + softmax_b
        weights = tf.ones([FLAGS.batch_size, FLAGS.num_steps])
        cost = tf.contrib.seq2seq.sequence_loss(logits, targets, weights)

    tvars = tf.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(cost, tvars), 5.0)
    train_op = tf.train.AdamOptimizer(2e-2).apply_gradients(zip(grads, tvars))

    steps = (len(numbers) // FLAGS.batch_size - 1) // FLAGS.num_steps
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        for epoch in range(FLAGS.max_epoch):
            state, costs = sess.run(initial_state), []
            for _ in range(steps):
                feed_dict = {}
                for i, (c, h) in enumerate(initial_state):
                    feed_dict[c] = state[i].c
                    feed_dict[h] = state[i].h
                value, state, _ = sess.run([cost, final_state, train_op], feed_dict)
                costs.append(value)
            print("epoch %d perplexity %.2f" % (epoch + 1, np.exp(np.mean(costs))))
        coord.request_stop()
        coord.join(threads)


if __name__ == "__main__":
    tf.app.run()
