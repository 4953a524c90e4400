"""Files of every kind that is read, damaged at random: what they held, or one clear error, and nothing else happens."""

from __future__ import annotations

import pytest

from tests.support.damaged.checked_reading import check_damaged
from tests.support.damaged.kinds import KINDS


def check(kind, folder, numbers):
    if kind == "onnx":
        pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
    results = check_damaged(KINDS[kind], folder, numbers)
    assert sum(results.errors.values()) == len(numbers) and results.errors["read"]


@pytest.mark.rows(every=4)
@pytest.mark.fault(
    "Files",
    "A checkpoint, graph or model is damaged, or made to harm.",
    happens="It is read as it is, or one error of `tf.errors` says what is wrong.",
    promise="Reading takes the memory of the file twice, and what its operations take; it ends, runs and writes "
    "nothing, and opens no file outside of the folder.",
)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_one_clear_error(tmp_path, kind):
    check(kind, tmp_path, range(KINDS[kind].few))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_damaged_files(tmp_path, kind):
    check(kind, tmp_path, range(1000, 11000))
