"""Objects of Ray's store that go over links: processes of a node map them, and ask for those that they cannot find."""

from __future__ import annotations

import queue

import numpy as np
import pytest

from tests.support.processes import PATIENCE_S, wait_for
from tfray.actors.links.messages import Answer, StepKey, plain, read
from tfray.actors.links.peer_link import LinkServer
from tfray.actors.links.peers import Peer, PeerHandle
from tfray.errors import UnavailableError

pytestmark = pytest.mark.ray

KEY = b"k" * 32
STEP = StepKey("driver", 7)


@pytest.fixture
def other(ray_local):
    """Another process, which has objects of its own, and looks for those of others."""

    @ray_local.remote
    class Other:
        def put(self, size):
            from tfray.actors.links.shared_objects import describe

            self.ref = ray_local.put(np.arange(size))
            return describe(self.ref)

        def find(self, descriptions):
            from tfray.actors.links.shared_objects import find

            found = find(descriptions)
            return found and [(array.sum(), array.flags.writeable, array.base is not None) for array in found]

        def is_there(self):
            return True

    actor = Other.remote()
    yield actor
    ray_local.kill(actor)


def test_another_process_maps_what_is_described_to_it(ray_local, other):
    from tfray.actors.links.shared_objects import describe

    refs = [ray_local.put(np.arange(size)) for size in (200_000, 300_000)]
    found = ray_local.get(other.find.remote([describe(ref) for ref in refs]))
    assert found == [(np.arange(size).sum(), False, True) for size in (200_000, 300_000)]


def test_what_has_been_dropped_is_missing_and_harms_nobody(ray_local, other):
    from tfray.actors.links.shared_objects import describe

    kept, dropped = ray_local.put(np.ones(200_000)), ray_local.put(np.ones(200_000))
    descriptions = [describe(kept), describe(dropped)]
    del dropped
    wait_for(lambda: ray_local.get(other.find.remote(descriptions)) is None)
    assert ray_local.get(other.find.remote(descriptions[:1])) == [(200_000, False, True)]


def test_what_a_dead_process_described_is_missing_in_the_end(ray_local, other):
    from tfray.actors.links.shared_objects import find

    description = ray_local.get(other.put.remote(200_000))
    (mapped,) = find([description])
    ray_local.kill(other)
    np.testing.assert_array_equal(mapped, np.arange(200_000))  # what has been mapped stays
    del mapped
    wait_for(lambda: find([description]) is None)


@pytest.fixture
def receiver(ray_local):
    """An actor that takes tensors by calls, and what the link beside it answers: a number, then the answer to it."""

    @ray_local.remote
    class Receiver:
        def __init__(self):
            self.taken = []

        def deliver(self, step, replica, keys, call, inline, *objects):
            from tfray.actors.links.packing import unpack

            self.taken.append((step, replica, list(keys), [np.sum(value) for value in unpack(inline, objects)]))
            return True

        def all(self):
            return self.taken

    actor, messages = Receiver.remote(), queue.SimpleQueue()
    server = LinkServer(KEY, "node", "127.0.0.1", lambda *message: messages.put(message), lambda link: None)
    peer = Peer("/job:ps/task:0", PeerHandle(actor, server.address, KEY), "node")
    yield peer, actor, messages
    peer.close()
    server.close()
    ray_local.kill(actor)


def packed(value):
    from tfray.actors.links.frames import PackedTensor

    return PackedTensor.of(value)


def test_objects_that_the_receiver_cannot_find_come_by_a_call(ray_local, receiver):
    peer, actor, messages = receiver
    items = [("large", ray_local.put(np.ones(200_000))), ("small", packed(np.float32(2)))]
    (receipt,) = peer.deliver(STEP, (3,), items, wants_receipt=True)
    link, header, tensors = messages.get(timeout=PATIENCE_S)
    message = read(header)
    assert message.keys == ("small", "large") and tensors == [2] and len(message.objects) == 1
    del items
    link.send(plain(Answer(read(header).number, is_missing=True)))
    receipt(PATIENCE_S)
    assert ray_local.get(actor.all.remote()) == [(STEP, (3,), ["small", "large"], [2, 200_000])]


def test_a_receiver_that_can_neither_find_nor_be_called_is_waited_for_no_longer(ray_local, receiver):
    reachable, _, messages = receiver
    peer = Peer(reachable.device, PeerHandle(None, reachable.handle.address, KEY), "node")
    (receipt,) = peer.deliver(STEP, (3,), [("large", ray_local.put(np.ones(200_000)))], wants_receipt=True)
    link, header, _ = messages.get(timeout=PATIENCE_S)
    link.send(plain(Answer(read(header).number, is_missing=True)))
    with pytest.raises(UnavailableError, match="/job:ps/task:0 cannot be called"):
        receipt(PATIENCE_S)
    peer.close()


def test_objects_are_kept_until_the_receiver_has_answered(ray_local, receiver, other):
    from tfray.actors.links.shared_objects import describe

    peer, actor, messages = receiver
    ref = ray_local.put(np.ones(200_000))
    described = describe(ref)
    assert peer.deliver(STEP, (), [("large", ref)], wants_receipt=False) == []
    del ref
    link, header, _ = messages.get(timeout=PATIENCE_S)
    message = read(header)
    assert message.objects == (described,)
    assert ray_local.get(other.find.remote(message.objects)) == [(200_000, False, True)]
    link.send(plain(Answer(message.number)))
    wait_for(lambda: ray_local.get(other.find.remote([described])) is None)
    assert ray_local.get(actor.all.remote()) == []


def test_objects_for_another_node_go_by_a_call(ray_local, receiver):
    peer, actor, _ = receiver
    elsewhere = Peer(peer.device, peer.handle, "another node")
    (receipt,) = elsewhere.deliver(STEP, (0,), [("large", ray_local.put(np.ones(200_000)))], wants_receipt=True)
    receipt(PATIENCE_S)
    assert ray_local.get(actor.all.remote()) == [(STEP, (0,), ["large"], [200_000])]
