"""The buckets of histograms in summaries, which are TensorFlow's."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

LARGEST: Final = float(np.finfo(np.float64).max)
"""The upper limit of the last bucket."""


@lru_cache(maxsize=1)
def bucket_limits() -> np.ndarray[Any, Any]:
    """The upper limits of a histogram's buckets: from 1e-12 to 1e20 by tenths, their negatives, 0, and the rest."""
    positive, limit = [], 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(LARGEST)
    return np.array([-value for value in reversed(positive)] + [0.0] + positive)


def filled_buckets(counts: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Limits and counts of the buckets that a message has: of a run of empty ones only the last.

    Args:
        counts: How many values each bucket of `bucket_limits` has.
    """
    kept = (counts > 0) | np.append(counts[1:] > 0, True)
    return bucket_limits()[kept], counts[kept].astype(np.float64)
