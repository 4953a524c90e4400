"""Calling an input function: what it takes, and what it returns, as features and labels."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.input.datasets import Dataset
from tfray.library.platform import logging
from tfray.training.sessions.session_run_hook import SessionRunHook


class IteratorInitializerHook(SessionRunHook):
    """Begins at a dataset's first element in each new session.

    Args:
        iterator: The iterator over the dataset.
    """

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._initializer)


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of a function's parameters, those that are bound already left out."""
    bound = function.keywords if isinstance(function, functools.partial) else {}
    return tuple(name for name in inspect.signature(function).parameters if name not in bound)


def call_input_fn(input_fn: Callable[..., Any], mode: str, params: Any, config: Any, input_context: Any = None) -> Any:
    """Call an input function with those of the other arguments that it takes, on the CPU of this task."""
    names = parameters_of(input_fn)
    given = {"mode": mode, "params": params, "config": config, "input_context": input_context}
    with get_default_graph().device("/cpu:0"):
        return input_fn(**{name: value for name, value in given.items() if name in names})


def features_and_labels(result: Any) -> tuple[Any, Any, list[SessionRunHook]]:
    """The features, the labels (None when there are none) and the hooks of what an input function has returned.

    Raises:
        ValueError: It is a tuple or list of another length than 2.
    """
    hooks: list[SessionRunHook] = []
    if isinstance(result, Dataset):
        with get_default_graph().device("/cpu:0"):
            iterator = result.make_initializable_iterator()
            hooks.append(IteratorInitializerHook(iterator))
            result = iterator.get_next()
    if isinstance(result, (list, tuple)):
        if len(result) != 2:
            raise ValueError(
                f"input_fn returned {len(result)} things, expected a pair (features, labels): a len 2 tuple"
            )
        return result[0], result[1], hooks
    return result, None, hooks


def only_features(result: Any, has_hooks: bool = False) -> tuple[Any, list[SessionRunHook]]:
    """The features and the hooks of what an input function for prediction has returned; labels are left out.

    Without hooks of the caller, which might end it, there is a warning of an input that does not end.
    """
    is_dataset = isinstance(result, Dataset)
    if not is_dataset and not has_hooks and not can_end():
        logging.warning("the input neither is a tf.data.Dataset nor has a queue runner: predict yields for ever")
    hooks: list[SessionRunHook] = []
    if is_dataset:
        with get_default_graph().device("/cpu:0"):
            iterator = result.make_initializable_iterator()
            hooks.append(IteratorInitializerHook(iterator))
            result = iterator.get_next()
    if isinstance(result, (list, tuple)):
        result = result[0]
    return result, hooks


def can_end() -> bool:
    """Whether something in the graph may come to its end: a queue that threads fill, or an iterator."""
    graph = get_default_graph()
    if graph.get_collection(GraphKeys.QUEUE_RUNNERS):
        return True
    return any(op.type == "IteratorGetNext" for op in graph.get_operations())
