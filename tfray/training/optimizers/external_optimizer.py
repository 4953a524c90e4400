"""Optimizers that run outside the graph: L-BFGS and its like, from SciPy.

Such a method chooses its own points: it evaluates loss and gradient at them until it has converged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework.convert import convert_to_tensor
from tfray.framework.graph import Tensor, get_default_session
from tfray.gradients import gradients
from tfray.library.variables.variables import trainable_variables
from tfray.ops.arrays import array_ops


class ExternalOptimizerInterface:
    """Base of optimizers outside the graph: they see all variables as one vector.

    Derive from it and override `_minimize`.

    Args:
        loss: Scalar tensor.
        var_list: Variables to change; the trainable ones when None.
        equalities: Tensors that are to be 0.
        inequalities: Tensors that are to be 0 or more.
        var_to_bounds: Bounds of variables: pairs of numbers, or of arrays of their shape.
        **optimizer_kwargs: Settings of the method.

    Raises:
        InvalidArgumentError: There are no variables, a shape is not known, or the loss depends on none of them.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: dict[Any, tuple[Any, Any]] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._loss = convert_to_tensor(loss)
        self._variables = list(trainable_variables() if var_list is None else var_list)
        self._equalities = [convert_to_tensor(value) for value in equalities or ()]
        self._inequalities = [convert_to_tensor(value) for value in inequalities or ()]
        self.optimizer_kwargs = optimizer_kwargs
        for variable in self._variables:
            if not variable.shape.is_fully_defined():
                raise InvalidArgumentError(
                    f"variable {variable.op.name!r} has shape {variable.shape}, expected a known one"
                )
        if not self._variables:
            raise InvalidArgumentError("No variables to optimise: the graph has none that is trainable")
        sizes = [variable.shape.num_elements() or 0 for variable in self._variables]
        self._slices = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes).tolist(), strict=True)]
        self._gradient = self._packed_gradient(self._loss)
        self._equality_gradients = [self._packed_gradient(value) for value in self._equalities]
        self._inequality_gradients = [self._packed_gradient(value) for value in self._inequalities]
        self._bounds = self._packed_bounds(var_to_bounds)

    def _packed_gradient(self, value: Tensor) -> Tensor:
        found = gradients(value, self._variables)
        if all(gradient is None for gradient in found):
            raise InvalidArgumentError(f"{value.name!r} depends on none of the variables")
        flat = [
            array_ops.reshape(
                array_ops.zeros(variable.shape, variable.dtype) if gradient is None else convert_to_tensor(gradient),
                [-1],
            )
            for gradient, variable in zip(found, self._variables, strict=True)
        ]
        return array_ops.concat([array_ops.cast(part, flat[0].dtype) for part in flat], 0)

    def _packed_bounds(self, bounds: dict[Any, tuple[Any, Any]] | None) -> list[tuple[float, float]] | None:
        if not bounds:
            return None
        packed: list[tuple[float, float]] = []
        for variable in self._variables:
            low, high = bounds.get(variable, (-np.inf, np.inf))
            shape = variable.shape.as_list()
            packed += zip(
                np.broadcast_to(low, shape).ravel().tolist(), np.broadcast_to(high, shape).ravel().tolist(), strict=True
            )
        return packed

    def minimize(
        self,
        session: Any = None,
        feed_dict: dict[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[[np.ndarray], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Change the variables until the method has converged, or has reached its limits.

        Args:
            session: The session; the default one when None.
            feed_dict: Feeds of every evaluation.
            fetches: Tensors to evaluate with every loss, for `loss_callback`.
            step_callback: Called with the vector of all variables after each step of the method.
            loss_callback: Called with the values of `fetches` at each evaluation.
            **run_kwargs: Further arguments of `Session.run`.

        Raises:
            InvalidArgumentError: There is no session.
        """
        session = session or get_default_session()
        if session is None:
            raise InvalidArgumentError("there is no default session: use `with tf.Session():` or pass session=")
        extra = list(fetches or ())

        def evaluate(targets: list[Any], report: bool = False) -> Callable[[np.ndarray], list[Any]]:
            def at(point: np.ndarray) -> list[Any]:
                self._load(session, point)
                values = session.run([*targets, *(extra if report else ())], feed_dict, **run_kwargs)
                if report and loss_callback is not None:
                    loss_callback(*values[len(targets) :])
                return [np.asarray(value, np.float64) for value in values[: len(targets)]]

            return at

        start = np.concatenate([np.ravel(value) for value in session.run(self._variables)]).astype(np.float64)
        result = self._minimize(
            initial_val=start,
            loss_grad_func=evaluate([self._loss, self._gradient], True),
            equality_funcs=[evaluate([value]) for value in self._equalities],
            equality_grad_funcs=[evaluate([gradient]) for gradient in self._equality_gradients],
            inequality_funcs=[evaluate([value]) for value in self._inequalities],
            inequality_grad_funcs=[evaluate([gradient]) for gradient in self._inequality_gradients],
            packed_bounds=self._bounds,
            step_callback=step_callback or _ignore,
            optimizer_kwargs=self.optimizer_kwargs,
        )
        self._load(session, result)

    def _unpacked(self, point: np.ndarray) -> list[np.ndarray]:
        return [
            np.asarray(point[part], variable.dtype.numpy).reshape(variable.shape.as_list())
            for variable, part in zip(self._variables, self._slices, strict=True)
        ]

    def _load(self, session: Any, point: np.ndarray) -> None:
        # Assign the variables. To feed their reads would not be enough: lookups of rows do not use these reads.
        assigns = [variable.initializer for variable in self._variables]
        values = self._unpacked(point)
        session.run(assigns, {assign.inputs[1]: value for assign, value in zip(assigns, values, strict=True)})

    def _minimize(self, **settings: Any) -> np.ndarray:
        """Return the best point; the arguments are those that `minimize` passes above."""
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() method: "
            f"{type(self).__name__} has none"
        )


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimises by `scipy.optimize.minimize`, with L-BFGS as a rule.

        optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 100})
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            optimizer.minimize(session)

    Arguments are those of `ExternalOptimizerInterface`; further ones, such as ``method`` and ``options``, go to
    `scipy.optimize.minimize`. The method is L-BFGS-B, or SLSQP when there are constraints.

    References:
        Byrd, Lu, Nocedal and Zhu, "A Limited Memory Algorithm for Bound Constrained Optimization", 1995.
    """

    def _minimize(self, **settings: Any) -> np.ndarray:
        from scipy import optimize

        kwargs = dict(settings["optimizer_kwargs"])
        constraints = [
            {"type": kind, "fun": _first(function), "jac": _first(gradient)}
            for kind, functions, derivatives in (
                ("eq", settings["equality_funcs"], settings["equality_grad_funcs"]),
                ("ineq", settings["inequality_funcs"], settings["inequality_grad_funcs"]),
            )
            for function, gradient in zip(functions, derivatives, strict=True)
        ]
        method = kwargs.pop("method", "SLSQP" if constraints else "L-BFGS-B")

        def loss_and_gradient(point: np.ndarray) -> tuple[float, np.ndarray]:
            loss, gradient = settings["loss_grad_func"](point)
            return float(loss), gradient

        self.result = optimize.minimize(
            loss_and_gradient,
            settings["initial_val"],
            jac=True,
            method=method,
            bounds=settings["packed_bounds"],
            constraints=constraints,
            callback=settings["step_callback"],
            **kwargs,
        )
        best: np.ndarray = self.result.x
        return best


def _ignore(point: np.ndarray) -> None:
    """The step callback where none is given."""


def _first(function: Callable[[np.ndarray], list[Any]]) -> Callable[[np.ndarray], Any]:
    return lambda point: function(point)[0]
