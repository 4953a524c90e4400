"""``tf.keras.regularizers``: losses that grow with the weights of layers, and `get`, which finds one by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tfray.library.layers.descriptions import as_given, deserializer, named_object, restored
from tfray.library.layers.descriptions import serialize as serialize
from tfray.library.variables.regularizers import L1L2 as L1L2
from tfray.library.variables.regularizers import Regularizer as Regularizer
from tfray.library.variables.regularizers import l1 as l1
from tfray.library.variables.regularizers import l1_l2 as l1_l2
from tfray.library.variables.regularizers import l2 as l2

__all__ = ["L1L2", "Regularizer", "deserialize", "get", "l1", "l1_l2", "l2", "serialize"]

_BY_NAME: Final = {"L1L2": L1L2, "l1": l1, "l1_l2": l1_l2, "l2": l2}


def get(identifier: Any) -> Any:
    """The regularizer of that name, with its default arguments, or of that description. A function or object as it is.

    Raises:
        InvalidArgumentError: There is none.
    """
    if isinstance(identifier, Mapping):
        return restored(identifier)
    if not isinstance(identifier, str):
        return as_given(identifier, "regularizer")
    found = named_object(identifier, _BY_NAME, "regularizer")
    return found if isinstance(found, Regularizer) or found not in _BY_NAME.values() else found()


deserialize = deserializer(get)
