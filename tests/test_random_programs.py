"""Random programs against TensorFlow itself, in an interpreter of its own.

``TFRAY_PEER_PYTHON`` names an interpreter that has TensorFlow; ``TFRAY_PROGRAMS`` is the number of programs (2,000).
"""

from __future__ import annotations

import operator
import os
import re
from pathlib import Path

import numpy as np
import pytest

import tfray as tf
from tests.support.differential import snippets
from tests.support.differential.calls import MAKERS, NUMBERS, Made, Pool
from tests.support.differential.compare import UNANSWERED, Peer, differences, make_program
from tests.support.differential.families import FAMILY_MAKERS
from tests.support.differential.networks import NETWORK_MAKERS
from tests.support.differential.side import each_alone
from tests.support.peer import PEER, needs_peer

COUNT = int(os.environ.get("TFRAY_PROGRAMS", "2000"))
PARTS = 20
PUBLIC = Path(__file__).parent / "golden" / "tensorflow_1_15.txt"
NUMERIC = re.compile(r"tf\.((bitwise|image|linalg|losses|math|metrics|nn|signal|sparse|strings|sets)\.)?[a-z]\w*$")
"""Names of functions of tensors; of those at the top, most are."""


@pytest.fixture(scope="module")
def peer():
    peer = Peer(PEER)
    yield peer
    peer.close()


@pytest.mark.slow
@needs_peer
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_agree_with_tensorflow(peer, part):
    seeds = range(part, COUNT, PARTS)
    before = len(UNANSWERED)
    found = [line for seed in seeds for line in differences(seed, peer)]
    assert not found, "\n".join(found)
    assert len(UNANSWERED) - before <= len(seeds) / 50, UNANSWERED  # some mistakes end TensorFlow's process


def drawn_calls():
    pool = Pool(np.random.default_rng(0))
    shapes = [(), (3,), (2, 3), (3, 3), (2, 3, 4), (2, 4, 4, 3), (1, 1)]
    dtypes = [*NUMBERS, "bool", "complex64", "float16", "string", "uint8"]
    pool.made = [Made(i, dtype, shape) for i, (dtype, shape) in enumerate((d, s) for d in dtypes for s in shapes)]
    drawn = [maker(pool) for maker in [*MAKERS, *FAMILY_MAKERS, *NETWORK_MAKERS] for _ in range(30)]
    return [call for call in drawn if call is not None]


def test_random_programs_reach_most_public_functions_of_tensors():
    calls = drawn_calls()
    names = {call.function for call in calls} - {"getitem"}
    names = {name for name in names if not name.startswith("__")}
    local = {name.removeprefix("snippet.") for name in names if name.startswith("snippet.")}
    names -= {f"snippet.{name}" for name in local}
    assert [name for name in local if not hasattr(snippets, name)] == []
    assert [name for name in names if not has(name)] == []
    # A snippet is told by name what it calls.
    told = {arg for call in calls for arg in call.args if isinstance(arg, str) and "snippet." in call.function}
    names |= {name for arg in told for name in (arg, f"metrics.{arg}") if arg.isidentifier() and has(name)}
    reached = {id(operator.attrgetter(name)(tf)) for name in names}
    public = {line.split("(")[0][3:] for line in PUBLIC.read_text().splitlines() if NUMERIC.match(line.split("(")[0])}
    wanted = {id(operator.attrgetter(name)(tf)) for name in public if has(name)}
    assert len(wanted & reached) / len(wanted) >= 0.7


def has(name):
    try:
        return callable(operator.attrgetter(name)(tf))
    except AttributeError:
        return False


def test_random_programs_are_the_same_for_one_seed_and_mostly_run():
    program = make_program(3)
    again = make_program(3)
    assert program["calls"] == again["calls"]
    answers = [each for each in each_alone(tf, program) if each is not None]
    assert sum("values" in each for each in answers) >= 0.8 * len(program["calls"])
