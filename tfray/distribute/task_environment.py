"""What the environment variable ``TF_CONFIG`` says: which task of a cluster this process is."""

from __future__ import annotations

import json
import os
from typing import Any, Final

TF_CONFIG: Final = "TF_CONFIG"


def environment_of_task() -> dict[str, Any]:
    """What ``TF_CONFIG`` says. Raises `ValueError` if it is no JSON dictionary."""
    text = os.environ.get(TF_CONFIG) or "{}"
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the environment variable TF_CONFIG is no JSON ({error}): {text!r}") from error
    if not isinstance(found, dict):
        raise ValueError(f"the environment variable TF_CONFIG is {text!r}, expected a dictionary")
    return found
