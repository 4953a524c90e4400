"""Policy gradients (REINFORCE, Williams, 1992) on a pole to be balanced.

Run it::

    python examples/policy_gradient.py --local
    python examples/policy_gradient.py
"""

import numpy as np
import sessions
from cart_pole import CartPole

import tfray as tf


def build():
    """Learn to balance a pole by following the gradient of the reward."""
    states = tf.placeholder(tf.float32, [None, 4])
    actions = tf.placeholder(tf.int32, [None])
    advantages = tf.placeholder(tf.float32, [None])
    logits = tf.layers.dense(tf.layers.dense(states, 32, tf.nn.tanh), 2)
    surprise = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
    loss = tf.reduce_mean(surprise * advantages)
    return {
        "states": states,
        "actions": actions,
        "advantages": advantages,
        "policy": tf.nn.softmax(logits),
        "train": tf.train.AdamOptimizer(0.02).minimize(loss),
    }


def returns(count, discount=0.98):
    """What is still to come after each of `count` steps with a reward of 1."""
    return (1 - discount ** np.arange(count, 0, -1)) / (1 - discount)


def play(session, model, cart, random):
    """One episode: its states and actions."""
    states, actions, state, ended = [], [], cart.reset(), False
    while not ended:
        right = session.run(model["policy"], {model["states"]: [state]})[0, 1]
        states.append(state)
        actions.append(int(random.random() < right))
        state, _, ended = cart.step(actions[-1])
    return np.stack(states), np.array(actions, np.int32)


def train(session, model, steps):
    """Play and learn. Returns the mean length of the last ten episodes."""
    cart, random = CartPole(0), np.random.default_rng(0)
    lengths = []
    for step in range(1, steps + 1):
        episodes = [play(session, model, cart, random) for _ in range(4)]
        gains = np.concatenate([returns(len(actions)) for _, actions in episodes])
        feeds = {
            model["states"]: np.concatenate([states for states, _ in episodes]),
            model["actions"]: np.concatenate([actions for _, actions in episodes]),
            model["advantages"]: (gains - gains.mean()) / (gains.std() + 1e-6),
        }
        session.run(model["train"], feeds)
        lengths += [len(actions) for _, actions in episodes]
        if step % max(1, steps // 5) == 0:
            print(f"step {step}: balanced for {np.mean(lengths[-10:]):.0f} steps")
    return float(np.mean(lengths[-10:]))


if __name__ == "__main__":
    sessions.main(build, train, steps=80)
