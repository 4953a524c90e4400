"""Deep Q-learning with a replay memory and a target network, on a walk over a frozen lake of 4 x 4 fields."""

import collections
import random

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("episodes", 150, "Walks to learn from.")
flags.DEFINE_float("learning_rate", 0.01, "Of Adam.")
flags.DEFINE_float("gamma", 0.9, "What the next field's value counts.")
FLAGS = flags.FLAGS

LAKE = "SFFFFHFHFFFHHFFG"  # start, frozen, holes, goal
MOVES = [(0, -1), (1, 0), (0, 1), (-1, 0)]
Transition = collections.namedtuple("Transition", ["state", "action", "reward", "next_state", "done"])


def step(state, action):
    row, column = state // 4 + MOVES[action][0], state % 4 + MOVES[action][1]
    state = min(max(row, 0), 3) * 4 + min(max(column, 0), 3)
    return state, float(LAKE[state] == "G") - float(LAKE[state] == "H"), LAKE[state] in "GH"


class QNetwork:
    def __init__(self, scope):
        with tf.variable_scope(scope):
            self.states = tf.placeholder(tf.int32, [None], name="states")
            self.actions = tf.placeholder(tf.int32, [None], name="actions")
            self.targets = tf.placeholder(tf.float32, [None], name="targets")
            hidden = tf.layers.dense(tf.one_hot(self.states, 16), 32, activation=tf.nn.relu)
            self.values = tf.layers.dense(hidden, 4)
            chosen = tf.reduce_sum(self.values * tf.one_hot(self.actions, 4), axis=1)
            self.loss = tf.losses.huber_loss(self.targets, chosen)
            self.train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(
                self.loss, global_step=tf.contrib.framework.get_or_create_global_step()
            )
        self.variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope=scope)


def walk(sess, network, epsilon, memory=None):
    # Walks to learn from begin anywhere, the walk to judge by at the start.
    state = 0 if memory is None else random.choice([field for field in range(16) if LAKE[field] in "SF"])
    reward, done = 0.0, False
    for _ in range(30):
        if random.random() < epsilon:
            action = random.randrange(4)
        else:
            action = np.argmax(sess.run(network.values, {network.states: [state]})[0])
        next_state, reward, done = step(state, action)
        if memory is not None:
            memory.append(Transition(state, action, reward, next_state, done))
        state = next_state
        if done:
            break
    return reward


def main(_):
    random.seed(0)
    tf.set_random_seed(0)
    online, target = QNetwork("online"), QNetwork("target")
    copy = tf.group(*[old.assign(new) for old, new in zip(target.variables, online.variables, strict=True)])
    memory = collections.deque(maxlen=2000)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for episode in range(FLAGS.episodes):
            walk(sess, online, max(0.1, 1.0 - episode / 100.0), memory)
            if episode % 10 == 0:
                sess.run(copy)
            for _ in range(4):
                batch = Transition(*zip(*random.sample(memory, min(32, len(memory))), strict=True))
                best = sess.run(target.values, {target.states: batch.next_state}).max(axis=1)
                targets = np.array(batch.reward) + FLAGS.gamma * best * (1 - np.array(batch.done))
                sess.run(
                    online.train_op,
                    {online.states: batch.state, online.actions: batch.action, online.targets: targets},
                )
        print("reward of the learned walk %.1f" % walk(sess, online, 0.0))


if __name__ == "__main__":
    tf.app.run()
