"""Random programs against TensorFlow itself, in an interpreter of its own.

``TFRAY_PEER_PYTHON`` names an interpreter that has TensorFlow; ``TFRAY_PROGRAMS`` is the number of programs (2,000).
"""

from __future__ import annotations

import os

import pytest

from tests.support.differential.compare import Peer, differences

PEER = os.environ.get("TFRAY_PEER_PYTHON", "")
COUNT = int(os.environ.get("TFRAY_PROGRAMS", "2000"))
PARTS = 20


@pytest.fixture(scope="module")
def peer():
    peer = Peer(PEER)
    yield peer
    peer.close()


@pytest.mark.slow
@pytest.mark.skipif(not PEER, reason="TFRAY_PEER_PYTHON names no interpreter with TensorFlow")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_agree_with_tensorflow(peer, part):
    found = [line for seed in range(part, COUNT, PARTS) for line in differences(seed, peer)]
    assert not found, "\n".join(found)
