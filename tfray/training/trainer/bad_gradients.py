"""Warns once of gradients that are not finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfray.library.platform import logging


class BadGradientsWarning:
    """A warning that is logged once, at the first step with gradients that are not finite.

    Args:
        mode: `RunConfig.bad_gradients`.
    """

    def __init__(self, mode: str | None) -> None:
        self._mode = mode
        self._told = False

    def observe(self, step: int, found: Mapping[int, Sequence[str]]) -> None:
        """Take what was found in a step: by replica, the variables whose gradients were not finite."""
        if not found or self._told:
            return
        self._told = True
        replica, variables = min(found.items())
        more = f" and {len(variables) - 3} more" if len(variables) > 3 else ""
        what = "the replica did not count" if self._mode == "skip" else "they were applied"
        logging.warning(
            "step %d: replica %d computed gradients that are NaN or infinite, for %s%s; %s. Nothing more is said of "
            "such steps here: see Result.statistics.bad_gradients",
            step,
            replica,
            ", ".join(variables[:3]),
            more,
            what,
        )
