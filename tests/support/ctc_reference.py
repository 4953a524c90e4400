"""Connectionist temporal classification by enumeration: every path of a few classes over a few time steps."""

from __future__ import annotations

from itertools import product

import numpy as np


def labels_of_path(path, blank, merge=True):
    """What a path says: equal neighbours merged, blanks left out."""
    kept = [c for t, c in enumerate(path) if not (merge and t and c == path[t - 1])]
    return tuple(int(c) for c in kept if c != blank)


def probabilities(logits, merge=True):
    """From labels to their probability, for the logits ``[time, classes]`` of one example."""
    y = np.exp(logits - logits.max(1, keepdims=True))
    y /= y.sum(1, keepdims=True)
    found: dict[tuple[int, ...], float] = {}
    for path in product(range(logits.shape[1]), repeat=len(logits)):
        labels = labels_of_path(path, logits.shape[1] - 1, merge)
        found[labels] = found.get(labels, 0.0) + float(np.prod([y[t, c] for t, c in enumerate(path)]))
    return found


def losses(inputs, indices, values, lengths, merge=True):
    """Negative log-probabilities of the labels of each example."""
    result = []
    for b, length in enumerate(lengths):
        labels = tuple(int(v) for v in values[indices[:, 0] == b])
        with np.errstate(divide="ignore"):
            result.append(-np.log(probabilities(inputs[:length, b], merge).get(labels, 0.0)))
    return np.array(result)
