"""``tf.keras.wrappers.scikit_learn``: models with the methods that scikit-learn's estimators have."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tfray.keras.models import Model, Sequential
from tfray.keras.utils import to_categorical

__all__ = ["KerasClassifier", "KerasRegressor"]


class BaseWrapper:
    """What both wrappers share.

    Args:
        build_fn: What makes a compiled model: a function, or an object that can be called. None for a derived class
            that can be called itself.
        **sk_params: Arguments of `build_fn`, and of the model's `fit`, `predict` and `evaluate`.

    Raises:
        ValueError: One is an argument of none of these.
    """

    def __init__(self, build_fn: Callable[..., Any] | None = None, **sk_params: Any) -> None:
        self.build_fn, self.sk_params = build_fn, sk_params
        self.check_params(sk_params)

    def _builder(self) -> Callable[..., Any]:
        own: Any = self
        return own.__call__ if self.build_fn is None else self.build_fn

    def check_params(self, params: Mapping[str, Any]) -> None:
        """Raise `ValueError` for an argument that nothing takes."""
        known = {"nb_epoch"}
        for taking in (Sequential.fit, Sequential.predict, Sequential.predict_classes, Sequential.evaluate):
            known |= {*inspect.signature(taking).parameters}
        known |= {*inspect.signature(self._builder()).parameters}
        for name in params:
            if name not in known:
                raise ValueError(f"{name} is not a legal parameter")

    def get_params(self, **params: Any) -> dict[str, Any]:
        """The arguments with which this was made."""
        return {**copy.deepcopy(self.sk_params), "build_fn": self.build_fn}

    def set_params(self, **params: Any) -> Any:
        """Change some of them. Raises `ValueError` for one that nothing takes."""
        self.check_params({name: value for name, value in params.items() if name != "build_fn"})
        self.build_fn = params.pop("build_fn", self.build_fn)
        self.sk_params.update(params)
        return self

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
        """Make a model and train it.

        Args:
            x: Examples.
            y: Targets.
            **kwargs: Arguments of the model's `fit`.

        Returns:
            The history that it gives.
        """
        builder = self._builder()
        self.model = builder(**self.filter_sk_params(builder))
        if self._is_categorical() and np.ndim(y) != 2:
            y = to_categorical(y)
        return self.model.fit(x, y, **{**self.filter_sk_params(Sequential.fit), **kwargs})

    def filter_sk_params(self, fn: Callable[..., Any], override: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Those arguments that a function takes, and `override`."""
        names = inspect.signature(fn).parameters
        return {name: value for name, value in self.sk_params.items() if name in names} | dict(override or {})

    def _is_categorical(self) -> bool:
        loss: Any = self.model._compiled_loss
        return getattr(loss, "__name__", loss) == "categorical_crossentropy"

    def _evaluated(self, x: Any, y: Any, kwargs: dict[str, Any]) -> list[float]:
        found = self.model.evaluate(x, y, **self.filter_sk_params(Model.evaluate, kwargs))
        return found if isinstance(found, list) else [found]


class KerasClassifier(BaseWrapper):
    """A model that classifies, for scikit-learn; arguments as for `KerasRegressor`."""

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
        """Make a model and train it.

        Args:
            x: Examples.
            y: Classes, of any kind, ``[examples]``; or vectors with a single 1.
            **kwargs: Arguments of the model's `fit`.

        Raises:
            ValueError: `y` has another shape.
        """
        y = np.array(y)
        if y.ndim == 2 and y.shape[1] > 1:
            self.classes_ = np.arange(y.shape[1])
        elif y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1):
            self.classes_ = np.unique(y)
            y = np.searchsorted(self.classes_, y)
        else:
            raise ValueError(f"Invalid shape for y: {y.shape}")
        self.n_classes_ = len(self.classes_)
        return super().fit(x, y, **kwargs)

    def predict(self, x: Any, **kwargs: Any) -> np.ndarray:
        """The classes of examples; `kwargs` go to the model's `predict_classes`."""
        model: Any = self.model
        found: np.ndarray = self.classes_[
            model.predict_classes(x, **self.filter_sk_params(Sequential.predict_classes, kwargs))
        ]
        return found

    def predict_proba(self, x: Any, **kwargs: Any) -> np.ndarray:
        """The probabilities of classes, ``[examples, classes]``, two for a model that gives one."""
        found = np.asarray(self.model.predict(x, **self.filter_sk_params(Sequential.predict, kwargs)))
        return np.hstack([1 - found, found]) if found.shape[1] == 1 else found

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """The accuracy. Raises `ValueError` where the model has not been compiled with it."""
        y = np.searchsorted(self.classes_, y)
        if self._is_categorical() and y.ndim != 2:
            y = to_categorical(y, self.n_classes_)
        for name, value in zip(self.model.metrics_names, self._evaluated(x, y, kwargs), strict=True):
            if name in ("accuracy", "acc"):
                return value
        raise ValueError(
            'The model is not configured to compute accuracy. You should pass `metrics=["accuracy"]` to the '
            "`model.compile()` method."
        )


class KerasRegressor(BaseWrapper):
    """A model of numbers, for scikit-learn.

    Args:
        build_fn: What makes a compiled model: a function, or an object that can be called. None for a derived class
            that can be called itself.
        **sk_params: Arguments of `build_fn`, and of the model's `fit`, `predict` and `evaluate`.

    Raises:
        ValueError: One is an argument of none of these.
    """

    def predict(self, x: Any, **kwargs: Any) -> np.ndarray:
        """The predictions, without dimensions of size 1; `kwargs` go to the model's `predict`."""
        return np.squeeze(self.model.predict(x, **self.filter_sk_params(Sequential.predict, kwargs)))

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """The loss with the opposite sign: more is better."""
        return -self._evaluated(x, y, kwargs)[0]
