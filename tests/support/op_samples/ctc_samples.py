"""Connectionist temporal classification."""

from __future__ import annotations

import numpy as np

from tests.support.op_samples import OpError, OpSample, grid
from tests.support.references import ctc_reference
from tfray.framework.sparse_tensor import SparseTensor
from tfray.ops.nn import ctc_ops

TWO_ROWS = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]])
LABELS = np.int32([1, 1, 0, 2, 2])
LENGTHS = np.int32([5, 3, 1])


def loss(inputs, indices, values, lengths, **options):
    return ctc_ops.ctc_loss(SparseTensor(indices, values, np.array([3, 2])), inputs, lengths, **options)


def _greedy(inputs, lengths, merge=True):
    paths = [tuple(inputs[:length, b].argmax(1)) for b, length in enumerate(lengths)]
    labels = [ctc_reference.labels_of_path(path, inputs.shape[2] - 1, merge) for path in paths]
    scores = [[-inputs[:length, b].max(1).sum()] for b, length in enumerate(lengths)]
    return [*_sparse(labels), np.array(scores)]


def _beams(inputs, lengths, paths=2):
    found = [
        sorted(ctc_reference.probabilities(inputs[:length, b]).items(), key=lambda item: -item[1])[:paths]
        for b, length in enumerate(lengths)
    ]
    parts = [_sparse([each[path][0] for each in found]) for path in range(paths)]
    return [*(part[i] for i in range(3) for part in parts), np.log([[p for _, p in each] for each in found])]


def _sparse(rows):
    indices = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    values = [label for row in rows for label in row]
    return np.array(indices).reshape(-1, 2), np.int64(values), np.array([len(rows), max(map(len, rows))])


SAMPLES = [
    OpSample("CTCLoss", loss, [grid(5, 3, 4), TWO_ROWS, LABELS, LENGTHS], ctc_reference.losses, twice=False),
    OpSample(
        "CTCLoss",
        lambda *arrays: loss(*arrays, ctc_merge_repeated=False),
        [grid(5, 3, 4), TWO_ROWS, LABELS, LENGTHS],
        lambda *arrays: ctc_reference.losses(*arrays, merge=False),
        twice=False,
        label="apart",
    ),
    OpSample(
        "CTCLoss",
        lambda *arrays: loss(*arrays, preprocess_collapse_repeated=True),
        [grid(5, 3, 4), TWO_ROWS, LABELS, LENGTHS],
        lambda x, i, v, n: ctc_reference.losses(x, i[1:], v[1:], n),
        twice=False,
        label="collapsed",
    ),
    OpSample(
        "CTCLoss",
        loss,
        [grid(4, 2, 3, low=-30, high=30), TWO_ROWS[:2], LABELS[:2], np.int32([4, 3])],
        ctc_reference.losses,
        twice=False,
        tolerance=4,
        label="sure",
    ),
    OpSample(
        "CTCGreedyDecoder",
        lambda x, n: _flat(ctc_ops.ctc_greedy_decoder(x, n)),
        [grid(6, 3, 3), np.int32([6, 0, 3])],
        _greedy,
        data_dependent=True,
    ),
    OpSample(
        "CTCGreedyDecoder",
        lambda x, n: _flat(ctc_ops.ctc_greedy_decoder(x, n, merge_repeated=False)),
        [grid(6, 3, 3), np.int32([6, 0, 3])],
        lambda x, n: _greedy(x, n, False),
        data_dependent=True,
        label="apart",
    ),
    OpSample(
        "CTCBeamSearchDecoder",
        lambda x, n: _flat_beams(ctc_ops.ctc_beam_search_decoder_v2(x, n, beam_width=100, top_paths=2)),
        [grid(5, 3, 3), np.int32([5, 1, 3])],
        _beams,
        data_dependent=True,
        tolerance=4,
    ),
]


def _flat(result):
    (sparse,), scores = result
    return [sparse.indices, sparse.values, sparse.dense_shape, scores]


def _flat_beams(result):
    paths, scores = result
    return [*(getattr(path, part) for part in ("indices", "values", "dense_shape") for path in paths), scores]


def _refused(match, indices, values, lengths, **options):
    return OpError(
        "CTCLoss",
        lambda x, i, v, n: loss(x, i, v, n, **options),
        [grid(5, 3, 4).astype(np.float32), np.array(indices), np.int32(values), np.int32(lengths)],
        match,
        at_run=True,
    )


ERRORS = [
    _refused("4 labels for 3 time steps", [[0, 0], [0, 1], [0, 2], [0, 3]], [0, 1, 0, 1], [3, 1, 1]),
    _refused(r"must be in \[0, 5\]", [[0, 0]], [0], [6, 1, 1]),
    _refused("does not fit a batch of 3", [[0, 0]], [0], [5, 1]),
    _refused("do not fit a batch of 3", [[3, 0]], [0], [5, 1, 1]),
    _refused("must not be negative", [[0, 0]], [-1], [5, 1, 1]),
    _refused("come last", [[0, 0], [0, 1]], [3, 1], [5, 1, 1]),
    OpError(
        "CTCBeamSearchDecoder",
        lambda x, n: ctc_ops.ctc_beam_search_decoder(x, n, beam_width=2, top_paths=3).log_probability,
        [grid(5, 3, 3), np.int32([5, 1, 3])],
        "requested more paths than the beam width",
    ),
    OpError(
        "CTCBeamSearchDecoder",
        lambda x, n: ctc_ops.ctc_beam_search_decoder(x, n, beam_width=5, top_paths=3).log_probability,
        [grid(1, 1, 2), np.int32([1])],
        "fewer than 3 sequences",
        at_run=True,
    ),
]
