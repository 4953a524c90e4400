"""Operations of checkpoints: they take files and handles, and are tested through `tf.train.Saver`."""

from __future__ import annotations

SAMPLES: list[object] = []

_WHY = "works on files and resources; see tests/test_saver.py"

TESTED_ELSEWHERE = dict.fromkeys(
    (
        "SaveShard",
        "MergeCheckpoint",
        "Snapshot",
        "TakeSnapshot",
        "WriteSnapshot",
        "RestoreShard",
        "RestoreTensor",
        "RandomStates",
    ),
    _WHY,
)
