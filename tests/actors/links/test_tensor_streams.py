"""Streams of tensors: large tensors to processes of other nodes, and what happens when a stream breaks."""

from __future__ import annotations

import gc
import queue
import select
import socket
import struct
import threading
import time

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("ray")

import tfray as tf
from tests.support.leftovers import stored_bytes, wait_for_store
from tests.support.processes import PATIENCE_S, wait_for
from tfray.actors.devices.registered_plan import RegisteredPlan
from tfray.actors.links import peer_link, tensor_streams
from tfray.actors.links import peers as peers_module
from tfray.actors.links.carriers import FRAME_BYTES
from tfray.actors.links.frames import PackedTensor, dtype_name
from tfray.actors.links.messages import Answer, Deliver, Hello, StepKey, Streamed, plain, read
from tfray.actors.links.peer_link import LinkServer, open_link, open_tensor_stream
from tfray.actors.links.tensor_streams import CHUNK_BYTES, IncomingTensors
from tfray.errors import UnavailableError
from tfray.runtime.edge_key import EdgeKey
from tfray.runtime.plan import Partition, Plan

pytestmark = pytest.mark.ray

KEY = b"k" * 32
STEP = StepKey("driver", 7)
HEAD = struct.Struct("<QQQQ")
"""What precedes a chunk: number and size of the tensor, place and size of the chunk."""


class Receiver:
    """A process of another node, as its peers see it; the test plays it."""

    def __init__(self, loans):
        from tfray.actors.links.loans import StoreBuffers
        from tfray.actors.links.peers import Peer, PeerHandle

        self.taken = queue.SimpleQueue()
        self.links = queue.SimpleQueue()
        self.buffers = StoreBuffers()
        self.incoming = IncomingTensors(self.buffers)
        self.is_open = threading.Event()
        self.server = LinkServer(KEY, "far", "127.0.0.1", self.take, self.closed, self.incoming.take_stream)
        self.peer = Peer("/job:worker/task:0/device:CPU:0", PeerHandle(None, self.server.address, KEY), "near", loans)

    def take(self, link, header, tensors):
        message = read(header)
        if isinstance(message, Hello):
            return
        self.links.put(link)

        def complete(arrived):
            arrays = [*tensors, *(each.array for each in arrived)]
            self.taken.put(dict(zip(message.keys, arrays, strict=True)))
            if message.number:
                link.send(plain(Answer(message.number)))

        self.incoming.claim(link, message.streamed, complete)

    def closed(self, link):
        self.incoming.forget(link)
        self.is_open.set()

    def close(self):
        self.peer.close()
        self.server.close()
        self.buffers.clear()


@pytest.fixture
def loans(ray_local):
    from tfray.actors.links.loans import Loans

    before = stored_bytes(ray_local)
    loans = Loans("/job:ps/task:0/device:CPU:0")
    yield loans
    loans.buffers.clear()
    del loans
    gc.collect()
    wait_for_store(ray_local, before)


@pytest.fixture
def receiver(loans):
    receiver = Receiver(loans)
    yield receiver
    receiver.close()
    del receiver
    gc.collect()


def lent(loans, array):
    return loans.buffers.write("edge", array)


def numbers(size_bytes, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).integers(0, 100, size_bytes // np.dtype(dtype).itemsize).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.complex64, np.bool_, ml_dtypes.bfloat16])
@pytest.mark.parametrize("size_bytes", [CHUNK_BYTES, CHUNK_BYTES + 64, 5 * CHUNK_BYTES - 16])
def test_a_tensor_arrives_as_it_was_sent(loans, receiver, dtype, size_bytes):
    sent = numbers(size_bytes, dtype).reshape(2, -1)
    (receipt,) = receiver.peer.deliver(STEP, (0,), [("a", lent(loans, sent))], wants_receipt=True)
    receipt(PATIENCE_S)
    (array,) = receiver.taken.get(timeout=PATIENCE_S).values()
    assert array.dtype == sent.dtype and not array.flags.writeable
    np.testing.assert_array_equal(array, sent)


def test_many_tensors_share_the_streams_and_no_room_is_written_while_it_is_read(loans, receiver):
    kept = []
    for turn in range(12):
        arrays = {f"{turn}.{i}": numbers(FRAME_BYTES + 8 * 1000 * i, np.int64, turn) + i for i in range(3)}
        items = [(key, lent(loans, array)) for key, array in arrays.items()]
        receiver.peer.deliver(STEP, (), items, wants_receipt=False)
        del items
        kept.append((arrays, receiver.taken.get(timeout=PATIENCE_S)))
        kept = kept[-3:]  # the room of those before is free, and serves again
        for expected, arrived in kept:
            assert arrived.keys() == expected.keys()
            for key, array in expected.items():
                np.testing.assert_array_equal(arrived[key], array)


def test_the_memory_of_a_tensor_is_free_once_it_has_left(loans, receiver):
    tensor = lent(loans, numbers(3 * CHUNK_BYTES))
    identity = tensor.buffer.identity
    receiver.peer.deliver(STEP, (), [("a", tensor)], wants_receipt=False)
    del tensor
    receiver.taken.get(timeout=PATIENCE_S)
    wait_for(lambda: lent(loans, numbers(3 * CHUNK_BYTES)).buffer.identity == identity)


@pytest.mark.parametrize(
    ("replicas", "order"),
    [((), "pause a a b b c c"), ((0,), "c c b b a a pause")],
    ids=["parameters", "gradients"],
)
def test_what_is_needed_first_overtakes_what_waits(loans, receiver, monkeypatch, replicas, order):
    """Parameters leave in the order in which they were first sent, gradients in the opposite order."""
    streams = queue.SimpleQueue()
    monkeypatch.setattr(tensor_streams, "STREAMS", 1)
    monkeypatch.setattr(peer_link, "UNSENT_BYTES", 1 << 14)
    monkeypatch.setattr(receiver.server, "_take_tensors", streams.put)  # nothing is read until all has been sent

    def deliver(key, chunks):
        receiver.peer.deliver(STEP, replicas, [(key, lent(loans, numbers(chunks * CHUNK_BYTES)))], wants_receipt=False)

    deliver("pause", 40)
    stream = streams.get(timeout=PATIENCE_S)
    select.select([stream], [], [], PATIENCE_S)  # its first chunk is under way, which keeps the stream busy
    for key in ["a", "b", "c", "c", "a", "b"]:
        deliver(key, 1)  # a connection that nobody reads does not even hold one chunk
    wait_for(lambda: len(receiver.incoming._tensors) == len(order.split()))  # each is awaited by now
    receiver.incoming.take_stream(stream)
    arrived = [key for _ in order.split() for key in receiver.taken.get(timeout=PATIENCE_S)]
    assert arrived == order.split()


# -- what a stranger with the key, or a broken peer, may send -----------------------------------------------


def connected(receiver):
    stream = open_tensor_stream(receiver.server.address, KEY)
    stream.settimeout(PATIENCE_S)
    return stream


def named(receiver, *forms):
    """Name tensors to the receiver over a link; returns the link."""
    link = open_link(receiver.server.address, KEY, "near", lambda *_: None, lambda _: None)
    streamed = tuple(Streamed(number, dtype_name(np.dtype(dtype)), shape) for number, dtype, shape in forms)
    keys = tuple(str(number) for number, _, _ in forms)
    link.send(plain(Deliver(STEP, (), keys, streamed=streamed)))
    return link


@pytest.mark.parametrize("is_named_first", [True, False])
def test_a_message_may_come_before_its_tensor_or_after_it(receiver, is_named_first):
    data = numbers(1000)
    stream = connected(receiver)
    chunks = [HEAD.pack(5, data.nbytes, start, 500) + data.tobytes()[start : start + 500] for start in (500, 0)]
    if is_named_first:
        named(receiver, (5, "f4", data.shape))
        receiver.links.get(timeout=PATIENCE_S)
    for chunk in chunks:
        for i in range(0, len(chunk), 7):
            stream.sendall(chunk[i : i + 7])
    if not is_named_first:
        wait_for(lambda: 5 in receiver.incoming._tensors and receiver.incoming._tensors[5].has_all)
        named(receiver, (5, "f4", data.shape))
    np.testing.assert_array_equal(receiver.taken.get(timeout=PATIENCE_S)["5"], data)
    stream.close()


@pytest.mark.parametrize(
    "chunk",
    [
        HEAD.pack(1, 100, 50, 51),
        HEAD.pack(1, 100, 0, 0),
        HEAD.pack(1, 1 << 63, 0, 100),
        HEAD.pack(1, 2 * CHUNK_BYTES, 0, CHUNK_BYTES + 1),
        HEAD.pack(1, 8, 0, 8) + bytes(8) + HEAD.pack(1, 16, 0, 8),
        HEAD.pack(1, 8, 0, 8) + bytes(8) + HEAD.pack(1, 8, 0, 8) + bytes(8),
    ],
    ids=["beyond its tensor", "empty", "too large a tensor", "too large a chunk", "of another size", "twice"],
)
def test_a_malformed_chunk_closes_its_stream_and_leaves_nothing(receiver, chunk, printed_text):
    stream = connected(receiver)
    stream.sendall(chunk)
    assert stream.recv(1) == b""
    wait_for(lambda: not receiver.incoming._tensors)
    assert "closed a connection: " in printed_text.readouterr().err


@pytest.mark.parametrize("form", [("f4", (3,)), ("f4", (-1, -2)), ("string", (8,)), ("nonsense", (8,))])
def test_a_form_that_does_not_fit_what_has_come_closes_the_link(receiver, form):
    stream = connected(receiver)
    stream.sendall(HEAD.pack(1, 8, 0, 8) + bytes(8))
    wait_for(lambda: 1 in receiver.incoming._tensors and receiver.incoming._tensors[1].has_all)
    link = open_link(receiver.server.address, KEY, "near", lambda *_: None, lambda _: None)
    dtype = form[0] if form[0] in ("string", "nonsense") else dtype_name(np.dtype(form[0]))
    link.send(plain(Deliver(STEP, (), ("a",), streamed=(Streamed(1, dtype, form[1]),))))
    assert receiver.is_open.wait(PATIENCE_S)
    assert receiver.taken.empty()
    stream.close()


def test_what_has_not_come_whole_is_dropped_with_its_stream_and_with_its_link(receiver):
    stream, other = connected(receiver), connected(receiver)
    link = named(receiver, (1, "u1", (8,)), (2, "u1", (8,)))
    for one, number in ((stream, 1), (other, 3)):
        one.sendall(HEAD.pack(number, 8, 0, 8) + bytes(8))
    wait_for(lambda: set(receiver.incoming._tensors) == {1, 2, 3})
    other.close()
    wait_for(lambda: set(receiver.incoming._tensors) == {1, 2})
    link.close()
    wait_for(lambda: not receiver.incoming._tensors)
    stream.close()


def test_the_room_of_what_has_not_come_whole_is_free_when_its_stream_has_ended(ray_local, receiver):
    """Though it was made after the last of this process's own tensors, and nothing comes after it."""
    before, stream = stored_bytes(ray_local), connected(receiver)
    receiver.buffers.clear()
    stream.sendall(HEAD.pack(1, CHUNK_BYTES, 0, CHUNK_BYTES) + bytes(8))
    wait_for(lambda: stored_bytes(ray_local) >= before + CHUNK_BYTES)
    stream.close()
    wait_for_store(ray_local, before)


def test_a_stream_that_breaks_closes_the_link_and_its_calls_raise(loans, receiver, monkeypatch):
    streams = []
    monkeypatch.setattr(receiver.server, "_take_tensors", streams.append)  # they are not read: nothing is taken
    (receipt,) = receiver.peer.deliver(STEP, (0,), [("a", lent(loans, numbers(40 * CHUNK_BYTES)))], wants_receipt=True)
    wait_for(lambda: len(streams) == tensor_streams.STREAMS)
    streams[0].shutdown(socket.SHUT_RDWR)
    with pytest.raises(UnavailableError):
        receipt(PATIENCE_S)
    assert receiver.is_open.wait(PATIENCE_S)
    for stream in streams:
        stream.close()


# -- several devices of one node -----------------------------------------------------------------------------


class Device:
    """A device of another node, with all that its actor has, in this process."""

    def __init__(self, task):
        from tfray.actors.devices.device_host import DeviceHost
        from tfray.actors.links.peers import PeerHandle

        self.name = f"/job:worker/task:{task}/device:CPU:0"
        self.host = host = DeviceHost(self.name, "far")
        take, closed = host.take_message, host.link_closed
        self.server = LinkServer(KEY, "far", "127.0.0.1", take, closed, host.incoming.take_stream)
        self.handle = PeerHandle(self, self.server.address, KEY)
        self.called = queue.SimpleQueue()
        self.deliver = self  # as a method of a Ray actor

    def remote(self, step, replicas, keys, call, inline, *objects):
        """A call of Ray."""
        import ray

        from tfray.actors.links.packing import unpack

        objects = ray.get(list(objects))  # as Ray does before a call
        self.called.put(keys)
        self.host.deliver(step, replicas, list(zip(keys, unpack(inline, objects), strict=True)))

    def arrived(self):
        """What comes for the step, by key."""
        wait_for(lambda: STEP in self.host.steps)
        return dict(self.host.steps[STEP].mailbox.take(time.monotonic() + PATIENCE_S, "a test"))

    def close(self):
        self.host.peers.close()
        self.server.close()
        self.host.steps.clear()
        self.host.loans.buffers.clear()


@pytest.fixture
def devices(ray_local):
    before = stored_bytes(ray_local)
    devices = [Device(task) for task in range(3)]
    for device in devices:
        device.host.peers.learn({other.name: other.handle for other in devices if other is not device})
    yield devices
    for device in devices:
        device.close()
    devices.clear()
    del device
    gc.collect()
    wait_for_store(ray_local, before)


@pytest.fixture
def sending(devices):
    """The sending side of a step on a parameter server of another node."""
    from tfray.actors.links.loans import Loans
    from tfray.actors.links.messages import StepRequest
    from tfray.actors.links.object_rendezvous import ObjectRendezvous
    from tfray.actors.links.peers import Peers

    peers = Peers("near", Loans("/job:ps/task:0/device:CPU:0"))
    peers.learn({device.name: device.handle for device in devices})
    rendezvous = ObjectRendezvous(StepRequest(STEP, 0), peers, lambda tensor: tensor)
    yield rendezvous, peers
    rendezvous.close()
    peers.close()
    peers.loans.buffers.clear()
    peers.clear()


def key_to(device, name="p:0"):
    return str(EdgeKey(name, "/job:ps/task:0/device:CPU:0", device.name))


def send(rendezvous, devices, array, name="p:0"):
    for device in devices:
        rendezvous.send(key_to(device, name), device.name, array)


def test_a_tensor_for_several_devices_of_a_node_crosses_once(devices, sending):
    rendezvous, peers = sending
    shared, own = numbers(3 * FRAME_BYTES), numbers(2 * FRAME_BYTES)
    send(rendezvous, devices, shared)
    send(rendezvous, devices[1:2], own, "q:0")
    send(rendezvous, devices[2:], np.float32(3), "r:0")
    rendezvous.flush()
    expected = [{"p:0": shared}, {"p:0": shared, "q:0": own}, {"p:0": shared, "r:0": np.float32(3)}]
    for device, tensors in zip(devices, expected, strict=True):
        arrived = {}
        while len(arrived) < len(tensors):
            arrived |= device.arrived()
        assert arrived.keys() == {key_to(device, name) for name in tensors}
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(arrived[key_to(device, name)], tensor)
    assert sum(peer.sent_bytes for peer in peers.values()) == shared.nbytes + own.nbytes
    assert all(device.called.empty() for device in devices)


@pytest.mark.parametrize("why", ["it does not know the others", "it dies", "it is frozen", "it is known to be dead"])
def test_what_a_device_does_not_pass_on_is_sent_directly(devices, sending, monkeypatch, why):
    rendezvous, peers = sending
    first, over = devices[0], threading.Event()
    if why == "it does not know the others":
        first.host.peers.clear()
    else:
        monkeypatch.setattr(first.host, "_pass_on", lambda *_: first.called.put("asked") or over.wait(PATIENCE_S))
    if why == "it is known to be dead":
        peers[first.name].died()
    if why == "it is frozen":
        monkeypatch.setattr(peers_module, "PASSED_ON_S", 0.3)
    array = numbers(3 * FRAME_BYTES)
    send(rendezvous, devices, array)
    rendezvous.flush()
    if why == "it dies":
        assert first.called.get(timeout=PATIENCE_S) == "asked"
        peers[first.name].close()
    for device in devices[1:]:
        np.testing.assert_array_equal(device.arrived()[key_to(device)], array)
        assert device.called.get(timeout=PATIENCE_S) == [key_to(device)]
    over.set()


def receiving(receiver, *senders, in_a_branch=False):
    """A plan of the receiver in which ``x:0`` comes from each sender."""
    with tf.Graph().as_default() as graph:

        def received(sender):
            key = str(EdgeKey("x:0", sender.name, receiver.name))
            attrs = {"key": key, "source": sender.name, "group": "", "shape": tf.TensorShape([]), "dtype": tf.float32}
            return tf.get_default_graph().add_operation("Recv", [], attrs).outputs[0]

        for sender in senders:
            if in_a_branch:
                tf.cond(tf.placeholder(tf.bool, []), lambda sender=sender: received(sender), lambda: tf.constant(0.0))
            else:
                received(sender)
    feeds = [op.name for op in graph.get_operations() if op.type == "Placeholder"]
    return RegisteredPlan(Plan(Partition(receiver.name, graph, feeds), receiver.host.device, sends_copy=True))


@pytest.mark.parametrize("has_begun", [True, False], ids=["running", "to begin"])
def test_a_step_ends_when_the_connection_from_a_device_for_which_it_waits_is_lost(devices, has_begun):
    """The process at the other end lives: nothing else would end the step. A branch of it waits for the device."""
    record = lost_by(devices, receiving(devices[1], devices[0], in_a_branch=True), has_begun)
    with pytest.raises(UnavailableError, match=f"{devices[0].name} died, or the connection") as caught:
        record.mailbox.take(time.monotonic() + PATIENCE_S, "the end")
    assert caught.value.device == devices[0].name


@pytest.mark.parametrize("has_begun", [True, False], ids=["running", "to begin"])
def test_a_step_that_has_all_goes_on_when_a_connection_is_lost(devices, has_begun):
    sender, receiver, other = devices
    record = lost_by(devices, receiving(receiver, sender, other), has_begun)
    lost, kept = (str(EdgeKey("x:0", device.name, receiver.name)) for device in (sender, other))
    record.mailbox.check_lost([])
    record.mailbox.check_lost([kept])
    with pytest.raises(UnavailableError, match=f"{sender.name} died, or the connection"):
        record.mailbox.check_lost([kept, lost])


def test_what_two_devices_send_is_lost_when_both_are(devices):
    sender, receiver, standby = devices
    plan = receiving(receiver, sender)
    plan.plan.partition.also_from[sender.name] = standby.name
    record = lost_by(devices, RegisteredPlan(plan.plan), has_begun=True)
    edge = str(EdgeKey("x:0", sender.name, receiver.name))
    record.mailbox.check_lost([edge])
    record.lose(standby.name)
    with pytest.raises(UnavailableError, match="died, or the connection"):
        record.mailbox.check_lost([edge])


def lost_by(devices, plan, has_begun):
    """The record of a step on the second device when the first one's link has closed; it begins before or after."""
    sender, receiver = devices[0].host.peers[devices[1].name], devices[1].host
    sender.deliver(STEP, (), [("of another edge", PackedTensor.of(np.float32(1)))], wants_receipt=False)
    wait_for(lambda: STEP in receiver.steps)
    record = receiver.steps[STEP]
    record.mailbox.take(time.monotonic(), "what has come")
    if has_begun:
        record.plan = plan
    sender.close()
    wait_for(lambda: record.lost)
    if not has_begun:
        record.plan = plan
        record.check_lost()
    return record


@pytest.mark.slow
def test_the_steps_of_workers_on_one_node_and_a_shard_on_another(ray_nodes):
    import ray

    ray_nodes.add_node(num_cpus=1, resources={"here": 1})
    ray_nodes.connect()
    ray_nodes.add_node(num_cpus=1, resources={"there": 1})
    size, steps = 3_000_000, 3
    with tf.device("/job:ps"):
        v = tf.Variable(np.arange(size, dtype=np.float32) / size)
    parts = []
    for task in range(2):
        with tf.device(f"/job:worker/task:{task}"):
            parts.append(v * (task + 1.0))
    with tf.device("/job:ps"):
        step = tf.assign(v, (parts[0] + parts[1]) / 4.0).op
    expected = np.arange(size, dtype=np.float32) / size
    for _ in range(steps):
        expected = (expected + expected * np.float32(2)) / np.float32(4)
    jobs = {
        "ps": tf.JobSpec(1, num_cpus=0.1, resources={"here": 0.1}),
        "worker": tf.JobSpec(2, num_cpus=0.1, resources={"there": 0.1}),
    }
    with tf.Cluster(jobs) as cluster, tf.Session(cluster) as session:
        session.run(v.initializer)
        for _ in range(steps):
            session.run(step)
        np.testing.assert_array_equal(session.run(v), expected)
        status = {name: ray.get(cluster.actor(name).status.remote()) for name in cluster.devices}
    streamed = {name.split("/")[1]: 0 for name in status}
    for name, each in status.items():
        streamed[name.split("/")[1]] += each["streamed_bytes"]
    assert streamed == {"job:ps": steps * expected.nbytes, "job:worker": 2 * steps * expected.nbytes}
