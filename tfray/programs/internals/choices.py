"""Choices between functions, as TensorFlow's modules make them within: by a predicate that may be known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tfray.errors import ArgumentError
from tfray.framework.constant_value import constant_value
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import bool_
from tfray.framework.graph import Graph, Tensor
from tfray.framework.scopes import control_dependencies, name_scope
from tfray.ops.checks.print_assert_ops import Assert
from tfray.ops.control.control_flow_ops import at_most_one
from tfray.ops.math.reduction_ops import reduce_any


def case_helper(
    cond_fn: Callable[..., Any],
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None,
    exclusive: bool,
    name: str | None,
    allow_python_preds: bool = False,
    **cond_kwargs: Any,
) -> Any:
    """`tf.case` by a function of the program's own in the place of `tf.cond`.

    Args:
        cond_fn: Called with a predicate and, by name, ``true_fn`` and ``false_fn``.
        pred_fn_pairs: Pairs of a predicate and a function, or a dictionary of these.
        default: Function to call when no predicate holds. Without it the step fails then.
        exclusive: Fail the step when more than one predicate holds.
        name: Name scope.
        allow_python_preds: Whether predicates may be bools of Python.
        cond_kwargs: Further arguments of `cond_fn`.

    Raises:
        TypeError: An element is not a pair of a bool and a function.
        ValueError: There is no function.
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, Mapping) else list(pred_fn_pairs)
    kinds = (Tensor, bool) if allow_python_preds else Tensor
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], kinds) or not callable(pair[1]):
            raise TypeError(f"case takes pairs of a bool tensor and a function, not {pair!r}")
    if not pairs and default is None:
        raise ArgumentError("case needs at least one pair, or a default")
    with name_scope(name, "case", [pred for pred, _ in pairs]):
        preds, checks = [convert_to_tensor(pred, bool_) for pred, _ in pairs], []
        if exclusive and len(pairs) > 1:
            checks.append(at_most_one(preds))
        chosen = default
        if chosen is None:
            checks.append(Assert(reduce_any(preds), ["Input error: None of conditions evaluated as True:", *preds], 10))
            chosen = pairs.pop()[1]
        for pred, function in reversed(pairs):
            chosen = _choice(cond_fn, pred, function, chosen, cond_kwargs)
        with control_dependencies(checks):
            return chosen()


def _choice(cond_fn: Callable[..., Any], pred: Any, then: Any, otherwise: Any, kwargs: dict[str, Any]) -> Any:
    return lambda: cond_fn(pred, true_fn=then, false_fn=otherwise, **kwargs)


def try_evaluate_constant(graph: Graph, output: Tensor) -> Any:
    """The value of a tensor where the graph alone determines it; else None.

    Args:
        graph: The tensor's graph, ``graph._c_graph``.
        output: The tensor, ``tensor._as_tf_output()``.
    """
    return constant_value(output)
