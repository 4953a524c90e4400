"""Connectionist temporal classification as arrays: sums over alignments, and the search for likely labellings.

Each time step is computed for the whole batch at once. Probabilities are kept as logarithms. The finite number `LOW`
stands for the logarithm of 0: infinities would give NaN when they are subtracted.

References:
    Graves, Fernandez, Gomez, Schmidhuber, Connectionist temporal classification: labelling unsegmented sequence
    data with recurrent neural networks (2006).
    Graves, Supervised sequence labelling with recurrent neural networks (2012), chapter 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tfray.framework.op_def import Array, NumpyDType
from tfray.ops.kernels.cpu_threads import parallel_for
from tfray.ops.kernels.row_sums import group_equal

LOW: Final = -1e30
"""Stands for the logarithm of 0. It is far below every real sum, and many of these add up without float32 overflow."""

POSSIBLE: Final = -1e28
"""A log-probability below this stands for an impossible event: it contains `LOW` at least once."""


def log_softmax(logits: Array) -> Array:
    """Logarithms of probabilities along the last dimension."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.subtract(shifted, np.log(np.exp(shifted).sum(axis=-1, keepdims=True)), out=shifted)


def softmax(logits: Array) -> tuple[Array, Array]:
    """Probabilities along the last dimension of ``[time, batch, classes]``, and what to subtract from the logits
    for their logarithms, ``[time, batch, 1]``."""
    y = np.empty_like(logits)
    offsets = np.empty((*logits.shape[:-1], 1), logits.dtype)

    def run(part: slice) -> None:
        largest = logits[part].max(axis=-1, keepdims=True)
        some = np.exp(np.subtract(logits[part], largest, out=y[part]), out=y[part])
        total = some.sum(axis=-1, keepdims=True)
        np.multiply(some, 1 / total, out=some)
        np.add(np.log(total), largest, out=offsets[part])

    _for_steps(run, y)
    return y, offsets


def _for_steps(run: Callable[[slice], Any], array: Array) -> None:
    """Call `run` with slices of the first dimension of `array`, each of about `_TILE` elements, on several threads."""
    length = max(1, _TILE * len(array) // max(array.size, 1))
    parallel_for(lambda index: run(slice(index * length, (index + 1) * length)), -(-len(array) // length))


_TILE: Final = 1 << 16
"""Elements of a part that one thread works on: 256 KiB in float32, which fits the second-level cache."""


# -- sums over alignments ------------------------------------------------------------------------------


class Alignments(NamedTuple):
    """What `sum_alignments` returns.

    Attributes:
        log_probability: Shape ``[batch]``, float64: of the labels given the outputs; `LOW` or below where none fits.
        occupied: Shape ``[time, batch, states]``: how likely each state is at each time, given the labels. The
            states are a blank, the first label, a blank, the second label, ..., a blank.
    """

    log_probability: Array
    occupied: Array


def sum_alignments(
    logits: Array, offsets: Array, labels: Sequence[Array], lengths: Array, merge_repeated: bool
) -> Alignments:
    """Sum over all ways to spread labels over time, with blanks and repetitions between them.

    Args:
        logits: Shape ``[time, batch, classes]``. The last class is the blank.
        offsets: Shape ``[time, batch, 1]``: the second result of `softmax`.
        labels: For each example a vector of its labels, none of which is the blank.
        lengths: Shape ``[batch]``: number of time steps of each example, at least 1.
        merge_repeated: A label may last for several steps, and equal labels need a blank between them.
    """
    time, batch, classes = logits.shape
    lasts = np.array([2 * len(row) for row in labels])
    states = int(lasts.max()) + 1
    # One pass computes both directions: the rows behind the batch hold the reversed sequences, whose prefix sums are
    # the suffix sums.
    emitted = np.full((time, 2 * batch, states), LOW, logits.dtype)
    extended = np.full((2 * batch, states), classes - 1)
    for b, (row, length, last) in enumerate(zip(labels, lengths, lasts, strict=True)):
        extended[b, 1:last:2], extended[batch + b, 1:last:2] = row, row[::-1]
        of_states = logits[:length, b].take(extended[b, : last + 1], axis=1)
        np.subtract(of_states, offsets[:length, b], out=emitted[:length, b, : last + 1])
        emitted[:length, batch + b, : last + 1] = emitted[:length, b, : last + 1][::-1, ::-1]
    prefixes, scales = _sum_prefixes(emitted, *_moves(extended, classes - 1, merge_repeated, logits.dtype))
    ends = prefixes[lengths - 1, np.arange(batch)]
    before_last = np.where(lasts > 0, ends[np.arange(batch), np.maximum(lasts - 1, 0)], LOW)
    log_ends = np.logaddexp(ends[np.arange(batch), lasts].astype(np.float64), before_last)
    log_probability = log_ends + scales[:, :batch].cumsum(axis=0)[lengths - 1, np.arange(batch)]
    # The prefix and the suffix sum both contain what the state itself emits: take it off once.
    occupied = np.subtract(prefixes[:, :batch], emitted[:, :batch], out=emitted[:, :batch])
    for b, (length, last) in enumerate(zip(lengths, lasts, strict=True)):
        occupied[:length, b, : last + 1] += prefixes[:length, batch + b, : last + 1][::-1, ::-1]
        occupied[:, b, last + 1 :] = LOW
    _normalize(occupied)
    return Alignments(log_probability, occupied)


def _moves(extended: Array, blank: int, merge_repeated: bool, dtype: NumpyDType) -> tuple[Array, Array | None]:
    """Which moves are allowed: 0 where allowed, `LOW` where not.

    Returns:
        Whether a state may follow the state two before it; and whether it may follow itself (None: always).
    """
    is_label = extended != blank
    may_skip = is_label.copy()
    may_skip[:, :2] = False
    if merge_repeated:
        may_skip[:, 2:] &= extended[:, 2:] != extended[:, :-2]
    zero, low = np.zeros((), dtype), np.array(LOW, dtype)
    return np.where(may_skip, zero, low), None if merge_repeated else np.where(is_label, low, zero)


def _sum_prefixes(emitted: Array, skips: Array, stays: Array | None) -> tuple[Array, Array]:
    """Log-probabilities of each state at each time, summed over all ways to get there, and their scales.

    The sums are relative to a running scale, the largest sum of the row, so that they keep their precision.

    Args:
        emitted: Shape ``[time, rows, states]``: what a state emits at a time.
        skips: Shape ``[rows, states]``: 0 where a state may follow the last but one.
        stays: Shape ``[rows, states]``: 0 where a state may follow itself; None where all may.
    """
    time, rows, states = emitted.shape
    # Two extra states before the first one, never reached: the recursion needs no special case at the border.
    padded = np.empty((time, rows, states + 2), emitted.dtype)
    padded[:, :, :2] = LOW
    scales = np.zeros((time, rows, 1))
    from_here, from_skip, top, total = (np.empty((rows, states), emitted.dtype) for _ in range(4))
    # A sequence starts in the first blank or in the first label.
    total[...] = LOW
    total[:, :2] = emitted[0, :, :2]
    for t in range(time):
        if t:
            past = padded[t - 1]
            stay = past[:, 2:] if stays is None else np.add(past[:, 2:], stays, out=from_here)
            np.add(past[:, :-2], skips, out=from_skip)
            np.maximum(stay, past[:, 1:-1], out=top)
            np.maximum(top, from_skip, out=top)
            np.exp(np.subtract(stay, top, out=total), out=total)
            np.exp(np.subtract(from_skip, top, out=from_skip), out=from_skip)
            np.add(total, from_skip, out=total)
            np.exp(np.subtract(past[:, 1:-1], top, out=from_skip), out=from_skip)
            np.add(total, from_skip, out=total)
            np.add(np.log(total, out=total), top, out=total)
            np.add(total, emitted[t], out=total)
        if t % _STEPS_PER_SCALE:
            padded[t, :, 2:] = total
            continue
        largest = total.max(axis=1, keepdims=True)
        # Impossible sequences keep their sums: subtracting the largest would make them 0, which means certain.
        largest[largest < POSSIBLE] = 0
        scales[t] = largest
        np.subtract(total, largest, out=padded[t, :, 2:])
    return padded[:, :, 2:], scales[:, :, 0]


_STEPS_PER_SCALE: Final = 4
"""Time steps between two rescalings, which subtract a row's largest logarithm. More steps lose digits in float32."""


def _normalize(log_weights: Array) -> None:
    """Turn logarithms into weights that add up to 1 along the last dimension; all 0 where nothing is possible."""

    def run(part: slice) -> None:
        weights = log_weights[part]
        largest = weights.max(axis=-1, keepdims=True)
        # exp(-80) is still a normal float32; arithmetic on subnormal numbers is slow.
        np.exp(np.maximum(np.subtract(weights, largest, out=weights), -80, out=weights), out=weights)
        weights /= np.where(largest < POSSIBLE, np.inf, weights.sum(axis=-1, keepdims=True))

    _for_steps(run, log_weights)


def subtract_expected(y: Array, rows: Array, occupied: Array, labels: Sequence[Array]) -> None:
    """Subtract from the probability of each class its probability given the labels: the gradient of the loss.

    Args:
        y: Shape ``[time, batch, classes]``, changed in place.
        rows: The examples that were aligned.
        occupied: What `sum_alignments` found for these.
        labels: Their labels.
    """
    for i, (b, each) in enumerate(zip(rows, labels, strict=True)):
        y[:, b, -1] -= occupied[:, i, : 2 * len(each) + 1 : 2].sum(axis=1)
        if len(each):
            distinct, order, starts = group_equal(each)
            by_label = occupied[:, i, 1 : 2 * len(each) : 2].take(order, axis=1)
            y[:, b, distinct] -= np.add.reduceat(by_label, starts[:-1], axis=1)


# -- decoding ------------------------------------------------------------------------------------------


class Decoded(NamedTuple):
    """Labellings that a decoder found.

    Attributes:
        labels: For each path, for each example a vector of labels.
        scores: Shape ``[batch, paths]``.
    """

    labels: list[list[Array]]
    scores: Array


def decode_greedily(inputs: Array, lengths: Array, merge_repeated: bool) -> Decoded:
    """The most likely class of each time step; equal neighbours merged, if asked for, and blanks left out.

    The score is the sum of the negated largest inputs.
    """
    time, batch, classes = inputs.shape
    best = inputs.argmax(axis=2)
    is_there = np.arange(time)[:, None] < lengths
    largest = np.take_along_axis(inputs, best[:, :, None], 2)[:, :, 0]
    kept = is_there & (best != classes - 1)
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    scores = -np.where(is_there, largest, 0).sum(axis=0, dtype=inputs.dtype)
    return Decoded([[best[kept[:, b], b] for b in range(batch)]], scores[:, None])


class _Beams:
    """The most likely labellings so far, `width` of them for each example, in no order.

    A 64-bit hash identifies a labelling: labellings with equal hashes are taken for the same one.
    """

    def __init__(self, batch: int, width: int, dtype: NumpyDType) -> None:
        shape = batch, width
        self.hash = np.zeros(shape, np.uint64)
        self.parent = np.zeros(shape, np.uint64)  # hash without the last label
        self.last = np.full(shape, -1)  # the last label
        self.blank = np.full(shape, LOW, dtype)  # log-probability of the alignments that end with a blank
        self.label = np.full(shape, LOW, dtype)  # log-probability of those that end with the last label
        # At the start only the empty labelling is possible. The other beams get hashes that no real labelling has.
        self.hash[:] = np.arange(width, dtype=np.uint64) + np.uint64(1 << 62)
        self.parent[:] = np.arange(width, dtype=np.uint64) + np.uint64(1 << 63)
        self.hash[:, 0] = 1
        self.blank[:, 0] = 0

    def take(self, rows: Array, where: Array) -> None:
        """Keep the beams at `where` of the examples `rows`."""
        for name in ("hash", "parent", "last", "blank", "label"):
            values = getattr(self, name)
            values[rows] = np.take_along_axis(values[rows], where, 1)


_HASH_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_HASH_MIX: Final = np.uint64(0xD6E8FEB86659FD93)


def _hash_with(hashes: Array, labels: Array) -> Array:
    """Hashes of labellings with one label more."""
    mixed = (hashes + _HASH_MIX) * _HASH_FACTOR + labels.astype(np.uint64) + np.uint64(1)
    return (mixed ^ (mixed >> np.uint64(29))) * _HASH_MIX


def decode_with_beams(inputs: Array, lengths: Array, width: int, paths: int, merge_repeated: bool) -> Decoded:
    """The most likely labellings, found among the `width` best of each time step.

    Args:
        inputs: Shape ``[time, batch, classes]``: logits. The last class is the blank.
        lengths: Shape ``[batch]``.
        width: Number of labellings kept from step to step.
        paths: Number of labellings returned, at most `width`.
        merge_repeated: Merge equal neighbours in the labellings that are returned.

    Returns:
        The labellings, the most likely first, with their log-probabilities: `LOW` or below where there are fewer.
    """
    time, batch, _ = inputs.shape
    log_y = log_softmax(inputs.astype(np.float64 if inputs.dtype == np.float64 else np.float32))
    beams = _Beams(batch, width, log_y.dtype)
    # For each step: where each beam comes from, and the label that it got, -1 for none.
    sources = np.empty((time, batch, width), np.int32)
    labels = np.full((time, batch, width), -1, np.int32)
    sources[...] = np.arange(width)
    for t in range(time):
        rows = np.flatnonzero(lengths > t)
        if rows.size:
            sources[t, rows], labels[t, rows] = _step(beams, rows, log_y[t, rows])
    totals = np.logaddexp(beams.blank, beams.label)
    order = np.argsort(-totals, axis=1, kind="stable")[:, :paths]
    found = _trace_back(sources, labels, order)
    if merge_repeated:
        found = [[each[np.diff(each, prepend=-1) != 0] for each in path] for path in found]
    return Decoded(found, np.take_along_axis(totals, order, 1))


def _step(beams: _Beams, rows: Array, log_y: Array) -> tuple[Array, Array]:
    """Advance the beams of some examples by a time step. Returns where each new one came from, and its new label."""
    hashes, parents, last = beams.hash[rows], beams.parent[rows], beams.last[rows]
    old_blank, old_label = beams.blank[rows], beams.label[rows]
    total = np.logaddexp(old_blank, old_label)
    count, width = hashes.shape
    candidates = _likely_labels(log_y[:, :-1], width + 1)
    each = np.take_along_axis(log_y, candidates, 1)
    # Extend by one label. A label equal to the last one counts as new only after a blank.
    grown = total[:, :, None] + each[:, None, :]
    repeats = last[:, :, None] == candidates[:, None, :]
    grown = np.where(repeats, old_blank[:, :, None] + each[:, None, :], grown)
    # If a beam's parent is a beam too, extending the parent gives this beam again: add that probability to the beam,
    # and drop the extension from the candidates. It must not be chosen where there are too few of them either: a second
    # beam of the same labels would then be given their probability.
    is_parent = parents[:, :, None] == hashes[:, None, :]
    parent = is_parent.argmax(axis=2)
    has_parent = np.take_along_axis(is_parent, parent[:, :, None], 2)[:, :, 0]
    of_parent = np.where(
        np.take_along_axis(last, parent, 1) == last,
        np.take_along_axis(old_blank, parent, 1),
        np.take_along_axis(total, parent, 1),
    )
    emitted = np.take_along_axis(log_y, np.maximum(last, 0), 1)
    new_label = np.logaddexp(old_label, np.where(has_parent, of_parent, LOW)) + emitted
    new_blank = total + log_y[:, -1:]
    example, beam = np.nonzero(has_parent)
    taken = candidates[example] == last[example, beam][:, None]
    place = taken.argmax(axis=1)
    there = taken.any(axis=1)
    grown[example[there], parent[example[there], beam[there]], place[there]] = -np.inf
    # Keep the `width` best of the old beams and the candidates.
    scores = np.concatenate([np.logaddexp(new_blank, new_label), grown.reshape(count, -1)], 1)
    chosen = np.argpartition(-scores, width - 1, axis=1)[:, :width]
    beams.blank[rows], beams.label[rows] = new_blank, new_label
    return _choose(beams, rows, chosen, scores, candidates)


def _likely_labels(log_y: Array, count: int) -> Array:
    """The `count` most likely labels of each example, in no order: a less likely one cannot be among the best beams."""
    classes = log_y.shape[1]
    if classes <= count:
        return np.broadcast_to(np.arange(classes), log_y.shape)
    return np.argpartition(-log_y, count - 1, axis=1)[:, :count]


def _choose(beams: _Beams, rows: Array, chosen: Array, scores: Array, candidates: Array) -> tuple[Array, Array]:
    width = chosen.shape[1]
    stays = chosen < width
    grown = np.maximum(chosen - width, 0)
    source = np.where(stays, chosen, grown // max(1, candidates.shape[1]))
    label = np.take_along_axis(candidates, grown % max(1, candidates.shape[1]), 1) if candidates.size else grown
    beams.take(rows, source)
    old = beams.hash[rows]
    beams.parent[rows] = np.where(stays, beams.parent[rows], old)
    beams.hash[rows] = np.where(stays, old, _hash_with(old, label))
    beams.last[rows] = np.where(stays, beams.last[rows], label)
    beams.blank[rows] = np.where(stays, beams.blank[rows], LOW)
    beams.label[rows] = np.where(stays, beams.label[rows], np.take_along_axis(scores, chosen, 1))
    return source, np.where(stays, -1, label)


def _trace_back(sources: Array, labels: Array, order: Array) -> list[list[Array]]:
    """The labels of the beams `order`, followed back through time: for each path, of each example."""
    time, batch, _ = sources.shape
    paths = order.shape[1]
    traced = np.empty((time, batch, paths), np.int64)
    place = order
    for t in range(time - 1, -1, -1):
        traced[t] = np.take_along_axis(labels[t], place, 1)
        place = np.take_along_axis(sources[t], place, 1)
    return [[each[each >= 0] for each in traced[:, :, path].T] for path in range(paths)]
