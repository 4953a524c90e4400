"""Functions that give variables the values of a checkpoint, as ``tf.contrib.framework`` has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tfray.framework.graph import Operation, Tensor
from tfray.library.layers.model_variables import get_unique_variable
from tfray.library.platform import logging
from tfray.ops.arrays.grouping_ops import group, no_op
from tfray.ops.arrays.source_ops import placeholder
from tfray.session import Session
from tfray.training.checkpoints.checkpoint_utils import CheckpointReader, checkpoint_path
from tfray.training.checkpoints.saveables import saveables_of
from tfray.training.checkpoints.saver import Saver


def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Operation, dict[Any, Any]]:
    """An operation that gives variables the values of a checkpoint, and what to feed it.

    Args:
        model_path: Path of the checkpoint, or a folder: its newest one.
        var_list: Variables, or a dictionary from their names in the checkpoint.
        ignore_missing_vars: Leave out those that the checkpoint lacks.

    Returns:
        The operation, and the feeds with which to run it.

    Raises:
        ValueError: The checkpoint lacks a variable, or has one of another shape.
    """
    path = checkpoint_path(model_path)
    wanted = _present(path, var_list) if ignore_missing_vars else var_list
    if not wanted:
        return no_op(), {}
    _check_present(path, wanted)
    definition = Saver(wanted).as_saver_def()
    graph = saveables_of(wanted)[0].handle.graph
    return graph.get_operation_by_name(definition.restore_op_name), {definition.filename_tensor_name: path}


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """A function of a session that gives variables the values of a checkpoint.

    Args:
        model_path: Path of the checkpoint, or a folder: its newest one.
        var_list: Variables, or a dictionary from their names in the checkpoint.
        ignore_missing_vars: Leave out those that the checkpoint lacks.
        reshape_variables: Accept values of other shapes with as many elements.

    Returns:
        The function; None when there is nothing to restore.
    """
    path = checkpoint_path(model_path)
    wanted = _present(path, var_list) if ignore_missing_vars else var_list
    if not wanted:
        logging.warning("checkpoint %s has none of the variables", path)
        return None
    saver = Saver(wanted, reshape=reshape_variables)
    return lambda session: saver.restore(session, path)


def _present(path: str, var_list: Any) -> dict[str, Any]:
    """Of what is to be restored, what the checkpoint has, by its names there."""
    reader = CheckpointReader(path)
    found: dict[str, Any] = {}
    for name, value in _named(var_list):
        if reader.has_tensor(name):
            found.setdefault(name, []).append(value)
        else:
            logging.warning("variable %s is not in checkpoint %s", name, path)
    return found


def _named(var_list: Any) -> list[tuple[str, Any]]:
    """What is to be restored, by its names in the checkpoint."""
    if isinstance(var_list, dict):
        return list(var_list.items())
    return [(saveables_of([value])[0].name, value) for value in var_list]


def _check_present(path: str, var_list: Any) -> None:
    """Raise `ValueError` unless the checkpoint has what is to be restored, in its shapes."""
    reader = CheckpointReader(path)
    sizes = reader.get_variable_to_shape_map()
    for name, value in _named(var_list):
        if not reader.has_tensor(name):
            raise ValueError(f"Checkpoint is missing variable [{name}]: {path}")
        shape = getattr(value, "shape", None)
        if shape is not None and not shape.is_compatible_with(sizes[name]):
            raise ValueError(f"Total size of new array must be unchanged for {name}: {shape} and {list(sizes[name])}")


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> tuple[Operation, dict[Tensor, Any]]:
    """An operation that gives variables values, and what is fed when it runs.

    Args:
        var_names_to_values: Arrays by the names of variables.

    Raises:
        ValueError: There is no such variable, or its shape differs.
    """
    assignments, feeds = [], {}
    for name, value in var_names_to_values.items():
        variable = get_unique_variable(name)
        if not variable.shape.is_compatible_with(np.shape(value)):
            raise ValueError(f"variable {name} has shape {variable.shape}, and its value {np.shape(value)}")
        fed = placeholder(variable.dtype, np.shape(value))
        assignments.append(variable.assign(fed).op)
        feeds[fed] = value
    return group(*assignments), feeds


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Session], None]:
    """`assign_from_values` as a function of a session."""
    operation, feeds = assign_from_values(var_names_to_values)

    def assign(session: Session) -> None:
        session.run(operation, feeds)

    return assign
