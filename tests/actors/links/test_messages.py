"""What processes of a cluster say to each other: messages come back, and a field that does not fit is named."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfray.actors.links.messages import MESSAGES, Answer, Deliver, RunStep, StepCall, StepKey, plain, read
from tfray.errors import DataLossError

STEP = StepKey("driver", 7)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=20,
)


def travelled(message):
    """A message as the other end of a link has it."""
    return as_it_comes(plain(message))


def as_it_comes(header):
    """Plain data as they are behind a link."""
    return msgpack.unpackb(msgpack.packb(header), use_list=False)


def of_type(kind):
    """Any message of a type. What its fields are to be is what their annotations say."""
    st.register_type_strategy(int, NUMBERS)
    return st.builds(kind)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MESSAGES).flatmap(of_type))
def test_messages_come_back(message):
    back = read(travelled(message))
    assert back == message and type(back) is type(message)
    for mine, theirs in zip(message, back, strict=True):
        assert type(mine) is type(theirs)


@settings(max_examples=100, deadline=None)
@given(PLAIN)
def test_anything_else_is_refused_or_a_message(header):
    try:
        message = read(header)
    except DataLossError:
        return
    assert read(travelled(message)) == message


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (plain(RunStep(b""))[:-1], "RunStep has 1 fields, not 0"),
        (plain(RunStep("text")), "RunStep.call is 'text', not bytes"),
        (plain(Deliver(STEP, (), (7,))), r"Deliver.keys is \(7,\), not tuple\[str, ...\]"),
        (plain(Deliver(("driver", "7", False), (), ())), "StepKey.number is '7', not int"),
        (plain(Deliver((), (), ())), "StepKey has 3 fields, not 0"),
        (plain(Deliver(STEP, (True,), ())), r"Deliver.replicas is \(True,\), not tuple\[int, ...\]"),
        (plain(Deliver(STEP, (1,), (), loans=((1, b"", "float32", (2.5,), b"", b""),))), r"Loan.shape is \(2.5,\)"),
        (plain(Deliver(STEP, (1,), (), objects=(b"",))), "Deliver.objects is"),
        (plain(Answer(1, is_missing=0)), "Answer.is_missing is 0, not bool"),
        ((len(MESSAGES),), f"nobody knows type {len(MESSAGES)}"),
        ((True,), "nobody knows type True"),
        ((), "makes no sense"),
        ({"do": "run_step"}, "makes no sense"),
    ],
)
def test_what_does_not_fit_is_named(header, said):
    for _ in range(2):  # what has been refused once is no known form
        with pytest.raises(DataLossError, match=said):
            read(as_it_comes(header))


@pytest.mark.parametrize("data", [b"", b"\xc1", msgpack.packb(7), msgpack.packb([1, 2]), msgpack.packb([["d"], [], 1])])
def test_what_is_no_call_of_a_step_is_refused(data):
    with pytest.raises(DataLossError, match="a message that makes no sense"):
        StepCall.from_bytes(data)
