"""Operations on datasets: their values are sequences, not arrays."""

from __future__ import annotations

from tfray.framework.op_def import registered_ops

SAMPLES = []

TESTED_ELSEWHERE = {
    name: "tests/test_data.py"
    for name in registered_ops()
    if name.endswith("Dataset")
    or name in ("Iterator", "MakeIterator", "IteratorGetNext", "IteratorToStringHandle", "IteratorFromStringHandle")
    or name == "MatchingDatasetFiles"
}
