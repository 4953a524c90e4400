"""The variables of a model that a `Trainer` trains: their values from and to a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfray.errors import InvalidArgumentError
from tfray.library.variables import variables as variables_lib
from tfray.library.variables.variables import SaveSliceInfo
from tfray.session import Session
from tfray.training.trainer.model import BuiltModel


def initializer(model: BuiltModel) -> Any:
    """The operations that give all variables their initial values, for ``session.run``."""
    with model.graph.as_default(), model.graph.control_dependencies(None):
        return [variables_lib.global_variables_initializer(), variables_lib.local_variables_initializer()]


def variables_of(model: BuiltModel) -> dict[str, Any]:
    """The global variables by name."""
    with model.graph.as_default():
        return {variable.op.name: variable for variable in variables_lib.global_variables()}


def whole_values(model: BuiltModel, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all variables. Parts of variables that the trainer has partitioned are joined again."""
    whole: dict[str, Any] = {}
    for name, variable in variables_of(model).items():
        part = variable._save_slice_info
        if part is None:
            whole[name] = values[name]
            continue
        if part.full_name not in whole:
            whole[part.full_name] = np.empty(part.full_shape, values[name].dtype)
        whole[part.full_name][_place_of(part)] = values[name]
    return whole


def load(model: BuiltModel, session: Session, values: Mapping[str, Any]) -> None:
    """Give the variables values. `values` has whole variables, also for those that are partitioned.

    Raises:
        InvalidArgumentError: A variable has no value.
    """
    session.run(initializer(model))
    for name, variable in variables_of(model).items():
        part = variable._save_slice_info
        if name in values:
            variable.load(values[name], session)
        elif part is not None and part.full_name in values:
            variable.load(values[part.full_name][_place_of(part)], session)
        else:
            raise InvalidArgumentError(f"the result has no value for variable {name!r} of the model")


def _place_of(part: SaveSliceInfo) -> tuple[slice, ...]:
    ends = [offset + size for offset, size in zip(part.var_offset, part.var_shape, strict=True)]
    return tuple(map(slice, part.var_offset, ends))
