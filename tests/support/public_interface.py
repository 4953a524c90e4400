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
OTHERWISE = {
    "tf.Operation": "programs do not call it: Graph.create_op makes operations, and messages do not describe them here",
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
    """Whether a call that TensorFlow's parameters allow is understood here as there."""
    try:
        parameters = inspect.signature(resolved(name)).parameters.values()
    except (TypeError, ValueError):
        return False
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    own = [marks.get(each.kind, "") + each.name for each in parameters]
    plain = [each for each in expected if not each.startswith("*")]
    return own[: len(plain)] == plain or own[: len(expected)] == expected


def absent() -> set[str]:
    """Names that do not exist, and that tfray is not meant to do without."""
    return {name for name in listed() if not is_there(name) and not reason(name.removeprefix("tf."))}


def different() -> set[str]:
    """Names with other parameters than TensorFlow's, each with parentheses."""
    return {
        f"{name}()"
        for name, parameters in listed().items()
        if parameters is not None and name not in OTHERWISE and is_there(name) and not takes(name, parameters)
    }


if __name__ == "__main__":
    NOT_YET.write_text("".join(f"{name}\n" for name in sorted(absent() | different())))
