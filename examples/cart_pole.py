"""A pole on a cart (Barto, Sutton and Anderson, 1983), to be kept upright by pushing left or right."""

from __future__ import annotations

import numpy as np

LIMIT = 200
"""Steps after which an episode ends in any case."""


class CartPole:
    """One cart. The state is its position, its velocity, the pole's angle and its angular velocity."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> np.ndarray:
        """Begin an episode near balance. Returns the state, `[4]` in float32."""
        self._state = self._random.uniform(-0.05, 0.05, 4)
        self._steps = 0
        return self._state.astype(np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        """Push right (1) or left (0) for 20 ms. Returns the state, a reward of 1, and whether the episode ended."""
        _, velocity, angle, spin = self._state
        force = 10.0 if action else -10.0
        cosine, sine = np.cos(angle), np.sin(angle)
        push = (force + 0.05 * spin**2 * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        acceleration = push - 0.05 * turn * cosine / 1.1
        self._state = self._state + 0.02 * np.array([velocity, acceleration, spin, turn])
        self._steps += 1
        fallen = abs(self._state[0]) > 2.4 or abs(self._state[2]) > 0.21
        return self._state.astype(np.float32), 1.0, bool(fallen or self._steps >= LIMIT)
