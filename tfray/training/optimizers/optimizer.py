"""The base of optimizers: what is common to all of them, and the methods that each overrides.

An optimizer is user-level code: it builds operations and has no part in running them. To write one, derive from
`Optimizer` and override

- `_create_slots`, to make the slots of each variable (`_zeros_slot`, `_get_or_make_slot`), and other variables
  (`_create_non_slot_variable`);
- `_prepare`, to make tensors of hyperparameters;
- `_apply_dense` and `_apply_sparse`, to update one variable, by plain operations or a fused one;
- `_finish`, where something is to happen after all updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.framework import dtypes
from tfray.framework.convert import convert_to_tensor
from tfray.framework.dtypes import DType
from tfray.framework.graph import Graph, Operation, Tensor, get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.framework.indexed_slices import IndexedSlices
from tfray.framework.region import outermost
from tfray.framework.scopes import current_mode
from tfray.gradients import gradients
from tfray.library.layers import losses
from tfray.library.variables.variables import Variable
from tfray.ops.arrays import array_ops, grouping_ops
from tfray.ops.arrays.partition_ops import unique
from tfray.ops.math.segment_ops import unsorted_segment_sum
from tfray.ops.state import row_index_ops, sparse_state_ops, state_ops
from tfray.training.optimizers import slot_creator

Hyperparameter = float | Tensor | Variable | Callable[[], Any]
"""A number, in this process or in the graph, or a function that returns one."""


class Optimizer:
    """Changes variables so as to make a loss smaller.

        train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())

    or, to change gradients before they are applied:

        grads_and_vars = optimizer.compute_gradients(loss)
        train_op = optimizer.apply_gradients([(tf.clip_by_norm(g, 5.0), v) for g, v in grads_and_vars])

    Args:
        use_locking: Accepted for TensorFlow 1's sake: updates of a variable never interleave.
        name: Name of the optimizer, and of the slots that it makes.

    Attributes:
        GATE_NONE: Use each gradient as soon as it is computed.
        GATE_OP: The same. In TensorFlow 1 it keeps an update from changing a variable that another gradient still
            has to read; here a step reads the values from before its updates in any case.
        GATE_GRAPH: Use no gradient before all are computed.
    """

    _variables_scope: str | None = None
    """The name scope of slots and other variables; they are then named after themselves, not after the optimizer.

    None: the current variable scope.
    """

    GATE_NONE: Final = 0
    GATE_OP: Final = 1
    GATE_GRAPH: Final = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise InvalidArgumentError("an optimizer needs a name: its slots are named after it")
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[tuple[Graph, str], Any]] = {}
        self._non_slots: dict[tuple[str, Graph], Any] = {}
        self._parts: dict[str, Any] = {}  # what a checkpoint saves with it: another optimizer, perhaps

    def get_name(self) -> str:
        """The optimizer's name."""
        return self._name

    # -- what programs call ----------------------------------------------------------------------

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """Add operations that compute the gradients of `loss` and apply them.

        Args:
            loss: The tensor to minimise.
            global_step: Variable to add 1 to once the variables are updated.
            var_list: Variables to update; the trainable ones of the graph when None.
            gate_gradients: ``GATE_NONE``, ``GATE_OP`` or ``GATE_GRAPH``.
            aggregation_method: One of `tf.AggregationMethod`.
            colocate_gradients_with_ops: Put each gradient on the device of the operation differentiated.
            name: Name of the operation that is returned; the optimizer's when None.
            grad_loss: Gradient of the final quantity with respect to `loss`; ones when None.

        Returns:
            The operation that makes one step.

        Raises:
            InvalidArgumentError: There is nothing to optimise: no variable, or none that `loss` depends on.
        """
        # By name, as TensorFlow does: an optimizer of the program's may take them as **kwargs.
        grads_and_vars = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        for _, variable in grads_and_vars:
            _check_variable(variable)
        if all(gradient is None for gradient, _ in grads_and_vars):
            names = ", ".join(variable.op.name for _, variable in grads_and_vars)
            raise InvalidArgumentError(
                f"No gradients provided for any variable: the loss {loss!r} depends on none of the variables {names} "
                "by operations that have gradients"
            )
        return self.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Add operations that compute the gradients of `loss`; arguments as for `minimize`.

        `loss` may also be a function without arguments that builds it.

        Returns:
            Pairs of gradient and variable; `var_list` may also hold tensors. A gradient is a tensor, an
            `IndexedSlices`, or None where `loss` does not depend on the variable.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise InvalidArgumentError(
                f"gate_gradients is {gate_gradients!r}, expected Optimizer.GATE_NONE, GATE_OP or GATE_GRAPH"
            )
        if callable(loss):
            loss = loss()
        if loss is None:
            raise InvalidArgumentError("loss is None, expected a tensor to minimise")
        loss = losses.share_of_replica(convert_to_tensor(loss))
        variables = _flatten(loss.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) if var_list is None else var_list)
        if not variables:
            raise InvalidArgumentError("No variables to optimise: the graph has none that is trainable")
        for variable in variables:
            if not isinstance(variable, Tensor):
                _check_variable(variable)
        self._assert_valid_dtypes([loss])
        grads = gradients(
            loss,
            variables,
            grad_ys=grad_loss,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH:
            grads = grouping_ops.tuple_(grads)
        # A variable that the loss does not depend on may be anything: a global step that is trainable by mistake.
        self._assert_valid_dtypes(v for d, v in zip(grads, variables, strict=True) if d is not None)
        return list(zip(grads, variables, strict=True))

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """Add operations that update variables by their gradients.

        Each gradient first passes through the functions ``function(gradient, variable)`` in the list
        ``graph.extra("replica_aggregation", list)``. Replicated training adds the function there that combines the
        gradients of all replicas.

        Args:
            grads_and_vars: What `compute_gradients` returns, or the like. Pairs without gradient are left out.
            global_step: Variable to add 1 to once the variables are updated.
            name: Name of the operation that is returned; the optimizer's when None.

        Returns:
            The operation that makes one step.

        Raises:
            InvalidArgumentError: There is no gradient at all, or one does not fit its variable.
            NotImplementedError: A pair has a tensor in place of its variable.
        """
        mode = current_mode()
        if mode is None:
            return self._apply_once(grads_and_vars, global_step, name)
        if mode.replica is None:
            raise RuntimeError(
                "Use `_distributed_apply()` instead of `apply_gradients()` in a cross-replica context: an optimizer's "
                "minimize or apply_gradients belongs into the function that strategy.experimental_run_v2 builds for "
                "each replica"
            )
        made: Operation = mode.replica.merge_call(self._distributed_apply, (list(grads_and_vars), global_step, name))
        return made

    def _distributed_apply(
        self, strategy: Any, grads_and_vars: list[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """`apply_gradients` across the replicas of a strategy: their gradients are added up."""
        return self._apply_once(summed_gradients(strategy, grads_and_vars), global_step, name)

    def _apply_once(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        pairs = [(_as_gradient(gradient, variable), variable) for gradient, variable in grads_and_vars]
        present = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        if not present:
            names = ", ".join(variable.op.name for _, variable in pairs)
            raise InvalidArgumentError(f"No gradients provided for any variable{': ' * bool(names)}{names}")
        # Within a branch or a loop the updates are added there, but slots always to the outermost graph.
        graph = get_default_graph()
        if not graph.admits(present[0][1].graph):
            graph = present[0][1].graph
        with graph.as_default():
            with outermost() as root, root.control_dependencies(None):
                self._create_slots([variable for _, variable in present])
            with graph.name_scope(name or self._name) as scope:
                self._prepare()
                for aggregate in graph.extra("replica_aggregation", list):
                    present = [(aggregate(gradient, variable), variable) for gradient, variable in present]
                updates = [self._update(gradient, variable) for gradient, variable in present]
                train_op = self._finish_step(updates, global_step, scope)
            if graph is graph.root and train_op not in graph.get_collection(GraphKeys.TRAIN_OP):
                graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
        return train_op

    def _update(self, gradient: Any, variable: Any) -> Operation:
        graph = get_default_graph()
        with graph.name_scope(f"update_{variable.op.name}"), state_ops.colocated_with(variable.handle):
            if isinstance(gradient, IndexedSlices):
                with graph.control_dependencies(self._renewed_slots(gradient, variable)):
                    if _by_handle(type(self), "_apply_sparse_duplicate_indices"):
                        rows = gradient.values, variable, gradient.indices
                        update = self._resource_apply_sparse_duplicate_indices(*rows)
                    else:
                        update = self._apply_sparse_duplicate_indices(gradient, variable)
            elif _by_handle(type(self), "_apply_dense"):
                update = self._resource_apply_dense(gradient, variable)
            else:
                update = self._apply_dense(gradient, variable)
            if variable.constraint is None:
                return _as_operation(update)
            with graph.control_dependencies([update]):
                return _as_operation(variable.assign(variable.constraint(variable.value())))

    def _renewed_slots(self, gradient: IndexedSlices, variable: Any) -> list[Operation]:
        """Operations that reset the slots of rows which now belong to another id; see `DynamicEmbedding`."""
        key = var_key(variable)
        slots = [by_variable[key] for by_variable in self._slots.values() if key in by_variable]
        if variable._row_index is None or not slots:
            return []
        with get_default_graph().control_dependencies([gradient.values]):
            rows = row_index_ops.take_reused_rows(variable._row_index)
        unused = array_ops.fill([array_ops.size(rows)], variable.shape[0].value - 1)
        return [sparse_state_ops.scatter_update(slot, rows, slot.sparse_read(unused)).op for slot in slots]

    def _finish_step(self, updates: list[Operation], global_step: Any, scope: str) -> Operation:
        if global_step is None:
            return self._finish(updates, scope)
        graph = get_default_graph()
        with graph.control_dependencies([self._finish(updates, "update")]):
            return _as_operation(state_ops.assign_add(global_step, 1, name=scope))

    # -- slots -----------------------------------------------------------------------------------

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot `name` of a variable, or None where there is none.

        Args:
            var: A variable that the optimizer updates, or its handle.
            name: One of `get_slot_names`.
        """
        return self._slots.get(name, {}).get(var_key(var))

    def get_slot_names(self) -> list[str]:
        """Names of the optimizer's slots, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """The optimizer's own variables in the current graph, slots and others, sorted by name."""
        graph = get_default_graph().root
        slots = [slot for by_variable in self._slots.values() for slot in by_variable.values() if slot.graph is graph]
        others = [variable for variable in self._non_slots.values() if variable.graph is graph]
        return sorted(slots + others, key=lambda variable: variable.name)

    @property
    def _checkpoint_dependencies(self) -> list[tuple[str, Any]]:
        """What a checkpoint saves with the optimizer besides its slots, by name."""
        others = ((name, variable) for (name, _), variable in self._non_slots.items())
        return [*self._parts.items(), *sorted(others, key=lambda item: item[0])]

    def _slot_dict(self, slot_name: str) -> dict[tuple[Graph, str], Any]:
        """The slots of that name by the keys of their variables."""
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        """The slot `slot_name` of `var`, initialised to `val` and named after `op_name` when it is made."""
        named = self._slot_name(slot_name, op_name)
        return self._slot(var, slot_name, lambda: slot_creator.create_slot(var, val, **named))

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        """The slot `slot_name` of `var`, whose value `initializer` computes."""
        named = self._slot_name(slot_name, op_name)
        return self._slot(
            var,
            slot_name,
            lambda: slot_creator.create_slot_with_initializer(var, initializer, shape, dtype, **named),
        )

    def _filled_slot(self, var: Any, value: float, slot_name: str, op_name: str) -> Any:
        """The slot `slot_name` of `var`, of one number in its shape when it is made."""

        def filled(shape: Any, dtype: Any) -> Tensor:
            return array_ops.fill(shape, np.asarray(value, dtype.numpy))

        return self._get_or_make_slot_with_initializer(var, filled, var.shape, var.dtype, slot_name, op_name)

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        """The slot `slot_name` of `var`, of zeros in its shape when it is made."""
        named = self._slot_name(slot_name, op_name)
        return self._slot(var, slot_name, lambda: slot_creator.create_zeros_slot(var, **named))

    def _slot_name(self, slot_name: str, op_name: str) -> dict[str, Any]:
        if self._variables_scope is None:
            return {"name": op_name}
        return {"name": slot_name, "scope": self._variables_scope}

    def _slot(self, var: Any, slot_name: str, create: Callable[[], Any]) -> Any:
        slots, key = self._slot_dict(slot_name), var_key(var)
        if key not in slots:
            slots[key] = create()
        return slots[key]

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        """A variable of the optimizer that belongs to no variable in particular; made once per graph."""
        graph = colocate_with.graph
        if (name, graph) not in self._non_slots:
            scope = nullcontext() if self._variables_scope is None else graph.name_scope(self._variables_scope)
            with graph.control_dependencies(None), state_ops.colocated_with(colocate_with.handle), scope:
                self._non_slots[name, graph] = Variable(initial_value, trainable=False, name=name)
        return self._non_slots[name, graph]

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Any | None:
        """The variable that `_create_non_slot_variable` made in a graph, or None."""
        return self._non_slots.get((name, (graph or get_default_graph()).root))

    # -- what optimizers override ----------------------------------------------------------------

    def _valid_dtypes(self) -> set[DType]:
        """Dtypes of the loss and the variables that the optimizer takes."""
        return set(dtypes.FLOATS)

    def _create_slots(self, var_list: list[Any]) -> None:
        """Make the slots of each variable of `var_list`. By default there are none."""

    def _prepare(self) -> None:
        """Make the tensors that all updates share. By default there are none."""

    def _apply(self, var: Any, gradient: Tensor, indices: Tensor | None) -> Any:
        """Return the operation that updates `var` by `gradient`, or its rows `indices`; those of equal ones add up.

        Optimizers whose update is one operation define this alone, for dense gradients and those of some rows alike.
        """
        name = type(self).__name__
        if indices is None:
            raise NotImplementedError(f"{name} defines neither _apply_dense nor _resource_apply_dense")
        raise NotImplementedError(
            f"{name} defines neither _apply_sparse nor _resource_apply_sparse, and the gradient of {var.op.name!r} is "
            "sparse: convert it with tf.convert_to_tensor"
        )

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        """Return the operation that updates `var` by `grad`, a tensor of its shape."""
        return self._apply(var, grad, None)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        """As `_apply_dense`; `handle` is the variable. The one of the two that is defined is called."""
        return _other_form(self, "_resource_apply_dense", "_apply_dense")(grad, handle)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        """Return the operation that updates `var` by the rows `grad`, whose indices are distinct."""
        return _other_form(self, "_apply_sparse", "_resource_apply_sparse")(grad.values, var, grad.indices)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        """Return the operation that updates `var` by the rows `grad`, in which indices may be repeated.

        By default the rows of equal indices are summed, and `_apply_sparse` is called.
        """
        kind = type(self)
        takes_distinct = (
            kind._apply_sparse is not Optimizer._apply_sparse
            or kind._resource_apply_sparse is not Optimizer._resource_apply_sparse
        )
        if kind._apply is not Optimizer._apply and not takes_distinct:
            return self._apply(var, grad.values, grad.indices)
        values, indices = deduplicated(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """As `_apply_sparse`; `handle` is the variable. The one of the two that is defined is called."""
        return self._apply(handle, grad, indices)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """As `_apply_sparse_duplicate_indices`; `handle` is the variable."""
        form = _other_form(self, "_resource_apply_sparse_duplicate_indices", "_apply_sparse_duplicate_indices")
        return form(IndexedSlices(grad, indices, dense_shape(handle)), handle)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        """Return the operation `name_scope` that runs `update_ops`, and what is to follow them."""
        return grouping_ops.group(*update_ops, name=name_scope)

    def _assert_valid_dtypes(self, tensors: Iterable[Any]) -> None:
        """Raise `InvalidArgumentError` unless the optimizer takes the dtypes of all `tensors`."""
        valid = self._valid_dtypes()
        for tensor in tensors:
            if tensor.dtype not in valid:
                names = ", ".join(sorted(dtype.name for dtype in valid))
                raise InvalidArgumentError(f"{tensor.name!r} is {tensor.dtype.name}, {self._name} takes {names}")

    def _call_if_callable(self, param: Any) -> Any:
        """`param`, or what it returns when it is a function."""
        return param() if callable(param) else param

    def _hyperparameter(self, param: Any, name: str) -> Tensor:
        """`param`, or what it returns when it is a function, as a tensor `name`."""
        return convert_to_tensor(self._call_if_callable(param), name=name)

    def _scalar_for(self, scalar: Any, var: Any) -> Tensor:
        """A hyperparameter in the dtype in which updates of `var` are computed: float32 for half precision."""
        return array_ops.cast(scalar, dtypes.float32 if var.dtype.size == 2 else var.dtype)


def summed_gradients(strategy: Any, grads_and_vars: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Pairs of a variable and the sum of the replicas' gradients, where there is one."""
    present = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
    reduced = strategy.extended.batch_reduce_to("SUM", present)
    return [(gradient, variable) for gradient, (_, variable) in zip(reduced, present, strict=True)]


def var_key(var: Any) -> tuple[Graph, str]:
    """By what an optimizer finds the slots of a variable, or of its handle: TensorFlow has the same key."""
    return var.op.graph, var.op.name


def _by_handle(kind: type[Optimizer], method: str) -> bool:
    """Whether an optimizer's class has its own form of a method for handles, and none that goes before it.

    Where one class defines both, the form for variables is called, as for TensorFlow 1's usual variables.
    """
    first = next(each for each in kind.__mro__ if {method, f"_resource{method}"} & vars(each).keys())
    return method not in vars(first)


def _other_form(optimizer: Optimizer, method: str, other: str) -> Any:
    """The form `other` of `method`, whose definition in `Optimizer` calls it.

    A class that defines `method` reaches that definition by ``super()``: then its own `other` form is not meant.
    """
    callers = [kind for kind in type(optimizer).__mro__ if kind is not Optimizer and method in vars(kind)]
    return getattr(super(callers[-1], optimizer) if callers else optimizer, other)


def deduplicated(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Sum the rows of `values` whose indices are equal. Returns the sums and the distinct indices."""
    distinct, position = unique(indices)
    return unsorted_segment_sum(values, position, array_ops.shape(distinct)[0]), distinct


def dense_shape(variable: Any) -> Tensor:
    """The shape of a variable, a constant where it is known."""
    if variable.shape.is_fully_defined():
        return convert_to_tensor(variable.shape.as_list())
    return state_ops.variable_shape(variable)


def _flatten(variables: Any) -> list[Any]:
    if isinstance(variables, (list, tuple)):
        return [variable for item in variables for variable in _flatten(item)]
    return [variables]


def _check_variable(variable: Any) -> None:
    if not isinstance(getattr(variable, "handle", None), Tensor):
        raise InvalidArgumentError(f"{variable!r} is not a variable: only variables can be optimised")


def _as_gradient(gradient: Any, variable: Any) -> Any:
    """`gradient` as a tensor or `IndexedSlices` that fits `variable`, or None."""
    if isinstance(variable, Tensor):
        raise NotImplementedError(f"{variable!r} is a tensor and cannot be updated: apply gradients to variables")
    _check_variable(variable)
    if gradient is None:
        return None
    if not isinstance(gradient, IndexedSlices):
        gradient = convert_to_tensor(gradient, variable.dtype)
        if not gradient.shape.is_compatible_with(variable.shape):
            raise InvalidArgumentError(
                f"gradient {gradient.name!r} has shape {gradient.shape}, variable {variable.op.name!r} {variable.shape}"
            )
    if gradient.dtype is not variable.dtype:
        raise InvalidArgumentError(
            f"gradient {gradient.name!r} is {gradient.dtype.name}, variable {variable.op.name!r} {variable.dtype.name}"
        )
    return gradient


def _as_operation(update: Any) -> Operation:
    return update if isinstance(update, Operation) else update.op
