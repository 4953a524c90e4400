"""What estimators of ``tf.contrib.learn`` can do, for estimators of one's own: be trained, and be evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Evaluable", "Trainable"]


class Trainable(ABC):
    """What has `fit`."""

    @abstractmethod
    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Train; the arguments are those of `tf.contrib.learn.Estimator.fit`."""


class Evaluable(ABC):
    """What has `evaluate`, and a folder of checkpoints."""

    @property
    @abstractmethod
    def model_dir(self) -> Any:
        """Folder of the checkpoints."""

    @abstractmethod
    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate; returns values by the names of metrics."""
