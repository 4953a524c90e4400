"""By which carrier a tensor travels, by its size, its dtype and where its receivers are."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ray")

from tfray.actors.links.carriers import FRAME_BYTES, LENT_BYTES, OBJECT_BYTES, Carrier, by_carrier, carrier_of, fits
from tfray.actors.links.frames import PackedTensor

NEAR, FAR, BOTH = [True, True], [False, False], [True, False]
STRINGS = np.array([b"text"] * 4, object)


def tensor(size, dtype=np.uint8):
    return np.zeros(size // np.dtype(dtype).itemsize, dtype)


@pytest.mark.parametrize(
    ("value", "near", "carrier"),
    [
        (np.float32(1), NEAR, Carrier.FRAME),
        (tensor(LENT_BYTES - 1), NEAR, Carrier.FRAME),
        (tensor(LENT_BYTES), NEAR, Carrier.LOAN),
        (tensor(LENT_BYTES, np.complex64), NEAR, Carrier.LOAN),
        (tensor(LENT_BYTES), FAR, Carrier.FRAME),
        (tensor(LENT_BYTES), BOTH, Carrier.FRAME),
        (tensor(FRAME_BYTES), BOTH, Carrier.FRAME),
        (tensor(FRAME_BYTES + 1), BOTH, Carrier.LOAN),
        (tensor(FRAME_BYTES + 1), FAR, Carrier.LOAN),
        (STRINGS, NEAR, Carrier.FRAME),
        (np.array([b"text"] * LENT_BYTES, object), NEAR, Carrier.FRAME),
        (np.array([b"text"] * FRAME_BYTES, object), NEAR, Carrier.OBJECT),
        (np.array(["text"]), NEAR, Carrier.CALL),
        (np.array([1, "a"], object), NEAR, Carrier.CALL),
        (np.array(["text"] * OBJECT_BYTES)[: OBJECT_BYTES // 16], FAR, Carrier.OBJECT),
        (tensor(0), FAR, Carrier.FRAME),
    ],
    ids=lambda value: f"{value.dtype}-{value.nbytes}" if hasattr(value, "nbytes") else str(value),
)
def test_the_carrier_follows_from_size_dtype_and_receivers(value, near, carrier):
    asked = []

    def are_near(destination):
        asked.append(destination)
        return near

    assert carrier_of(value, are_near, "somewhere") is carrier
    assert asked in ([], ["somewhere"])
    if carrier is Carrier.FRAME:
        assert fits(value)
        np.testing.assert_array_equal(PackedTensor.of(value).unpacked(), value)


@pytest.mark.parametrize(
    ("value", "carrier"),
    [(tensor(1 << 20), Carrier.FRAME), (tensor((1 << 20) + 1), Carrier.LOAN), (STRINGS, Carrier.FRAME)],
    ids=["as large", "larger", "strings"],
)
def test_what_is_to_go_in_no_frame_is_lent(value, carrier):
    assert carrier_of(value, lambda _: FAR, "somewhere", 1 << 20) is carrier


@pytest.mark.parametrize("shares_store", [True, False])
def test_what_neither_a_frame_nor_a_loan_carries_goes_by_a_call(shares_store):
    packed, other = ("a", PackedTensor.of(np.float32(1))), ("b", np.array(["text"]))
    assert by_carrier([packed, other], shares_store) == ([], [], [other])
