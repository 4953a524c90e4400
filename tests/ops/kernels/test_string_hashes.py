"""Hashes of strings, against published ones."""

from __future__ import annotations

import pytest

from tfray.ops.kernels.string_hashes import siphash

KEY = [0x0706050403020100, 0x0F0E0D0C0B0A0908]


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 0x726FDB47DD0E0E31), (8, 0x93F5F5799A932462), (15, 0xA129CA6149BE45E5)]
)
def test_siphash_has_the_values_of_its_authors(size, expected):
    """Of the bytes 0, 1, 2, ... (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, appendix A)."""
    others = [bytes(40), b"", b"of another length"]
    assert siphash([others[0], bytes(range(size)), *others[1:]], KEY)[1] == expected


def test_there_may_be_no_strings():
    assert siphash([], KEY).tolist() == []
