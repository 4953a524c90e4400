"""TensorFlow 1.15's public interface as it is listed, and what of it is not here yet.

`tests/golden/tensorflow_1_15.txt` is the list; `scripts/tensorflow_names.py` makes it. `not_there_yet.txt` beside it
has the names that are still missing, and those, with parentheses, whose parameters still differ.

    python -m tests.support.public_interface

writes the second anew.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import tfray as tf
from tests.support import ROOT
from tfray.absent_names import reason

NOT_YET = ROOT / "tests" / "golden" / "not_there_yet.txt"

VERSIONS = ("VERSION", "__git_version__", "__version__")
_BY_PLACE = "one function does this for all kinds of things, and is called by place"
OTHERWISE = {
    "tf.Operation": "programs do not call it: Graph.create_op makes operations, and messages do not describe them here",
    "tf.GraphKeys.VARIABLES": "a name, which TensorFlow's class has as a property",
    "tf.VariableScope.get_variable": "a scope knows its variable store: programs call tf.get_variable",
    "tf.test.TestCase.test_session": "a property, so that no test runner calls it",
    "tf.TensorArraySpec.is_compatible_with": _BY_PLACE,
    "tf.TensorSpec.is_compatible_with": _BY_PLACE,
    "tf.keras.activations.deserialize": _BY_PLACE,
    "tf.keras.losses.deserialize": _BY_PLACE,
    **{
        f"tf.keras.{kind}.serialize": _BY_PLACE
        for kind in ("activations", "constraints", "initializers", "losses", "metrics", "optimizers", "regularizers")
    },
}
"""Names whose parameters differ for good, and why."""


def listed() -> dict[str, list[str] | None]:
    """Every public name of TensorFlow 1.15 with its parameters; None for what cannot be called."""
    found: dict[str, list[str] | None] = {}
    for line in (ROOT / "tests" / "golden" / "tensorflow_1_15.txt").read_text().splitlines():
        name, parenthesis, rest = line.partition("(")
        found[name] = rest.rstrip(")").replace(",", " ").split() if parenthesis else None
    return found


def resolved(name: str) -> Any:
    """What ``tf.nn.relu`` names. Raises `AttributeError`."""
    found: Any = tf
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def is_there(name: str) -> bool:
    """Whether a public name exists. What a module imports for itself is not public."""
    found: Any = tf
    for part in name.split(".")[1:]:
        own = vars(found) if isinstance(found, ModuleType) else {}
        if not hasattr(found, part) or (part in own and part not in (*own["__all__"], *VERSIONS)):
            return False
        found = getattr(found, part)
    return True


def takes(name: str, expected: list[str]) -> bool:
    """Whether a call that TensorFlow's parameters allow is understood here as there.

    The names are the same, in the same order; of classes the first eight, which may be given by place. TensorFlow's
    ``_`` is any name.
    """
    try:
        own = _own_parameters(name)
    except (TypeError, ValueError):
        return False
    names = [each.name for each in own if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    by_place = [each.name for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
    wanted = [each for each in expected if not each.startswith("*")]
    wanted = [names[i] if each == "_" and i < len(names) else each for i, each in enumerate(wanted)]
    is_in_order = names[: len(wanted)] == wanted or (inspect.isclass(resolved(name)) and set(wanted) <= set(names))
    return is_in_order and by_place[: min(8, len(wanted))] == wanted[:8]


def _own_parameters(name: str) -> list[inspect.Parameter]:
    """The parameters of a function, of a class or of a method without ``self``."""
    found, (owner, _, last) = resolved(name), name.rpartition(".")
    holder = resolved(owner)
    is_method = inspect.isclass(holder) and inspect.isfunction(inspect.getattr_static(holder, last))
    return list(inspect.signature(found).parameters.values())[1 if is_method else 0 :]


def absent() -> set[str]:
    """Names that do not exist, and that tfray is not meant to do without."""
    return {name for name in listed() if not is_there(name) and not any(map(reason, with_owners(name)))}


def with_owners(name: str) -> list[str]:
    """``linalg.LinearOperator`` and ``linalg`` for a method of the former; and the method."""
    parts = name.split(".")[1:]
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def different() -> set[str]:
    """Names with other parameters than TensorFlow's, each with parentheses."""
    return {
        f"{name}()"
        for name, parameters in listed().items()
        if parameters is not None and name not in OTHERWISE and is_there(name) and not takes(name, parameters)
    }


if __name__ == "__main__":
    NOT_YET.write_text("".join(f"{name}\n" for name in sorted(absent() | different())))
