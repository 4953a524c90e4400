"""Keys of edges between devices, and their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfray.runtime.edge_key import EdgeKey, in_turns, without_turns

PS, WORKER = "/job:ps/task:0/device:CPU:0", "/job:worker/task:1/device:GPU:0"
NAMES = st.from_regex(r"[A-Za-z0-9_.\-/]+", fullmatch=True)


@pytest.mark.parametrize(
    ("key", "text", "op_name"),
    [
        (EdgeKey.of_tensor("scope/x", 1, PS, WORKER), f"scope/x:1 {PS} -> {WORKER}", "scope/x"),
        (EdgeKey.of_control("update", WORKER, PS), f"^update {WORKER} -> {PS}", "update"),
        (EdgeKey("x:0", PS, WORKER, "3.1"), f"3.1|x:0 {PS} -> {WORKER}", "x"),
    ],
)
def test_a_key_and_its_text(key, text, op_name):
    assert str(key) == text
    assert EdgeKey.parse(text) == key
    assert key.op_name == op_name


@given(NAMES, st.integers(0, 9), st.lists(st.integers(0, 1000)))
def test_keys_come_back(name, index, turns):
    key = EdgeKey.of_tensor(name, index, PS, WORKER)
    text = in_turns(str(key), turns)
    assert EdgeKey.parse(text) == key._replace(turns=".".join(map(str, turns)))
    assert str(EdgeKey.parse(text)) == text and without_turns(text) == str(key)
