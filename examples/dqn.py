"""A deep Q-network (Mnih et al., 2015) on a pole to be balanced, with replay and a target network.

Run it::

    python examples/dqn.py --local
    python examples/dqn.py
"""

from collections import deque

import numpy as np
import sessions
from cart_pole import CartPole

import tfray as tf

DISCOUNT = 0.98


def network(states, scope):
    """The value of either action, `[batch, 2]`."""
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        layer = tf.layers.dense(states, 48, tf.nn.relu, name="first")
        return tf.layers.dense(tf.layers.dense(layer, 48, tf.nn.relu, name="second"), 2, name="values")


def build():
    """Learn the values of actions, and balance a pole by them."""
    states, following = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    actions, ended = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    values = network(states, "online")
    # Which action to take next the online network says, what it is worth the target network (van Hasselt, 2016).
    best = tf.one_hot(tf.argmax(network(following, "online"), 1), 2)
    future = tf.reduce_sum(best * network(following, "target"), 1)
    targets = tf.stop_gradient(1.0 + DISCOUNT * (1.0 - ended) * future)
    taken = tf.reduce_sum(values * tf.one_hot(actions, 2), 1)
    loss = tf.losses.huber_loss(targets, taken)
    online, target = (tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope) for scope in ("online", "target"))
    return {
        "inputs": (states, actions, following, ended),
        "values": values,
        "train": tf.train.AdamOptimizer(0.001).minimize(loss, var_list=online),
        "follow": tf.group(*[tf.assign(old, new) for old, new in zip(target, online, strict=True)]),
    }


def train(session, model, steps):
    """Play, remember and learn. Returns the best mean length of ten episodes in a row."""
    cart, random = CartPole(0), np.random.default_rng(0)
    memory, lengths, best = deque(maxlen=5000), deque(maxlen=10), 0.0
    state, length = cart.reset(), 0
    session.run(model["follow"])
    for step in range(steps):
        if random.random() < max(0.02, 1 - step / 1500):
            action = int(random.integers(2))
        else:
            action = int(np.argmax(session.run(model["values"], {model["inputs"][0]: [state]})))
        following, _, ended = cart.step(action)
        length += 1
        fallen = ended and length < 200
        memory.append((state, action, following, float(fallen)))
        state = following
        if ended:
            lengths.append(length)
            best = max(best, float(np.mean(lengths)) if len(lengths) == 10 else 0.0)
            state, length = cart.reset(), 0
        if step >= 200:
            batch = [memory[index] for index in random.integers(0, len(memory), 64)]
            columns = [np.stack(column) for column in zip(*batch, strict=True)]
            session.run(model["train"], dict(zip(model["inputs"], columns, strict=True)))
        if step % 100 == 0:
            session.run(model["follow"])
    print(f"balanced for {best:.0f} steps")
    return best


if __name__ == "__main__":
    sessions.main(build, train, steps=6000)
