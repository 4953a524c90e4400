"""Large tensors go through objects of Ray's store that are written anew: nobody may notice, whatever he keeps."""

from __future__ import annotations

import gc
import queue

import numpy as np
import pytest

import tfray as tf
from tests.support.leftovers import stored_bytes, wait_for_store
from tests.support.processes import PATIENCE_S, wait_for
from tfray.actors.links.frames import PackedTensor
from tfray.actors.links.messages import Answer, Hello, Loan, Returned, StepKey, StepRequest, Unmap, plain, read
from tfray.actors.links.peer_link import LinkServer
from tfray.errors import OpError

pytestmark = pytest.mark.ray

KEY = b"k" * 32
STEP = StepKey("driver", 7)
PS, WORKERS = "/job:ps/task:0", ["/job:worker/task:0", "/job:worker/task:1"]
ROW = 1024
ROWS = 512
BYTES = 4 * ROWS * ROW
"""Of a tensor of float32 that goes through the store."""


@pytest.fixture
def cluster(ray_local, cluster_of_module):
    """A shard and two workers. The tests share them: each waits until the store is as it was."""
    small = {"num_cpus": 0.1}
    cluster = cluster_of_module({"ps": tf.JobSpec(1, **small), "worker": tf.JobSpec(2, **small)})
    before = stored_bytes(ray_local)
    yield cluster
    wait_for_store(ray_local, before)


def large(value):
    """A tensor that goes through the store, filled with a number of the graph, computed where it is called."""
    return tf.fill([ROWS, ROW], value) + 0.0


def test_what_is_kept_of_one_step_is_not_overwritten_by_later_ones(cluster):
    """A queue keeps what has been received, while its sender goes on."""
    number = tf.placeholder(tf.float32, [])
    with tf.device(PS):
        sent = large(number)
    with tf.device(WORKERS[0]):
        kept = tf.FIFOQueue(20, tf.float32, [[ROWS, ROW]], name="kept")
        keep, take = kept.enqueue(sent), kept.dequeue()
        ends = tf.stack([take[0, 0], take[-1, -1]])
    with tf.Session(cluster) as session:
        for step in range(12):
            session.run(keep, {number: step})
        assert [session.run(ends).tolist() for _ in range(12)] == [[step, step] for step in range(12)]


def test_several_receivers_each_see_the_step_that_they_are_in(cluster):
    number = tf.placeholder(tf.float32, [])
    with tf.device(PS):
        sent = large(number)
    seen = []
    for worker in WORKERS:
        with tf.device(worker):
            seen.append(tf.reduce_mean(sent + 1))
    with tf.device(PS):
        back = tf.add_n([tf.reduce_max(large(value)) for value in seen])
    with tf.Session(cluster) as session:
        for step in range(30):
            assert session.run([*seen, back], {number: step}) == [step + 1, step + 1, 2 * step + 2]


@pytest.mark.parametrize(
    "dtype",
    [
        tf.bfloat16,
        tf.bool,
        tf.complex64,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (tf.float64, tf.int64)),
    ],
    ids=lambda dtype: dtype.name,
)
def test_every_dtype_and_changing_shapes_come_as_they_were(cluster, dtype):
    given = tf.placeholder(dtype, [None, None])
    with tf.device(PS):
        sent = tf.identity(tf.transpose(given))
    with tf.device(WORKERS[0]):
        received = tf.transpose(sent)
    rng = np.random.default_rng(0)
    with tf.Session(cluster) as session:
        for shape in [(ROWS, 2 * ROW), (2 * ROW, ROWS), (ROWS + 1, 2 * ROW), (3, 2), (ROWS, 2 * ROW)]:
            value = rng.integers(0, 2, shape).astype(dtype.as_numpy_dtype)
            np.testing.assert_array_equal(session.run(received, {given: value}), value)


def test_every_turn_of_a_loop_sends_what_it_has_computed(cluster):
    def turn(step, total):
        with tf.device(PS):
            sent = large(tf.cast(step, tf.float32))
        with tf.device(WORKERS[0]):
            return step + 1, total + sent[-1, -1] + sent[0, 0]

    with tf.device(WORKERS[0]):
        _, total = tf.while_loop(lambda step, _: step < 15, turn, [0, 0.0])
    with tf.Session(cluster) as session:
        assert session.run(total) == 2 * sum(range(15))


def test_one_who_only_sends_needs_no_more_room_the_longer_it_does(ray_local, cluster):
    number = tf.placeholder(tf.float32, [])
    with tf.device(PS):
        sent = large(number)
    with tf.device(WORKERS[0]):
        last = tf.get_variable("last", [], initializer=tf.zeros_initializer())
        receive = tf.assign(last, sent[-1, -1]).op
    with tf.Session(cluster) as session:
        session.run(tf.global_variables_initializer())
        before = stored_bytes(ray_local)
        for step in range(40):
            session.run(receive, {number: step})
        assert stored_bytes(ray_local) - before <= 8 * BYTES
        assert session.run(last) == 39


def test_a_session_leaves_nothing_in_the_store_of_a_cluster_that_lives_on(ray_local, cluster):
    before = stored_bytes(ray_local)
    with tf.device(PS):
        sent = large(1.0)
    with tf.device(WORKERS[0]):
        received = tf.reduce_sum(sent)
    for _ in range(3):
        with tf.Session(cluster) as session:
            for _ in range(3):
                session.run(received)
            assert stored_bytes(ray_local) > before
        wait_for(lambda: stored_bytes(ray_local) == before)


def test_a_step_that_fails_returns_what_it_has_borrowed(ray_local, cluster):
    bad = tf.placeholder(tf.bool, [])
    with tf.device(PS):
        sent = large(3.0)
    with tf.device(WORKERS[0]), tf.control_dependencies([tf.Assert(tf.logical_not(bad), ["bad"])]):
        received = tf.reduce_max(sent)
    with tf.Session(cluster) as session:
        session.run(received, {bad: False})
        held = stored_bytes(ray_local)
        for _ in range(10):
            with pytest.raises(OpError, match="bad"):
                session.run(received, {bad: True})
            assert session.run(received, {bad: False}) == 3
        assert stored_bytes(ray_local) - held <= 8 * BYTES


# -- one sender and a receiver that the test plays ------------------------------------------------------


class Receiver:
    """Takes what a peer sends, and answers when it is told to."""

    def __init__(self, loans):
        from tfray.actors.links.peers import Peer, PeerHandle

        self.messages = queue.SimpleQueue()
        self.closed = queue.SimpleQueue()
        self.server = LinkServer(KEY, "node", "127.0.0.1", self.heard, self.closed.put)
        self.peer = Peer(WORKERS[0], PeerHandle(None, self.server.address, KEY), "node", loans)

    def heard(self, link, header, tensors):
        if not isinstance(read(header), Hello):
            self.messages.put((link, header, tensors))

    def take(self):
        """The link and the loans of the next message; what it is answered is that they have been found."""
        link, header, _ = self.messages.get(timeout=PATIENCE_S)
        message = read(header)
        if message.number:
            link.send(plain(Answer(message.number)))
        return link, message.loans

    def is_heard(self):
        """Return once all that it has sent has been read: what is sent after it has been answered."""
        (receipt,) = self.peer.deliver(STEP, (0,), [("word", PackedTensor.of(np.float32(1)))], wants_receipt=True)
        link, header, _ = self.messages.get(timeout=PATIENCE_S)
        link.send(plain(Answer(read(header).number)))
        receipt(PATIENCE_S)

    def close(self):
        self.peer.close()
        self.server.close()


@pytest.fixture
def sender(ray_local, monkeypatch):
    """What a process lends, and two receivers. What is free is kept, however long the machine takes."""
    from tfray.actors.links import loans as module

    monkeypatch.setattr(module, "KEPT_S", 2 * PATIENCE_S)
    loans = module.Loans(PS)
    receivers = [Receiver(loans), Receiver(loans)]
    yield loans.buffers, receivers
    for receiver in receivers:
        receiver.close()
    loans.buffers.clear()
    del loans, receivers, receiver
    gc.collect()  # a buffer knows the peers that have mapped it, and these know the buffers


def lend(buffers, value, *receivers):
    """Send one tensor to each receiver; returns what they got: links and loans, and the object in which it lies."""
    tensor = buffers.write("edge", np.full(200_000, value))
    for receiver in receivers:
        receiver.peer.deliver(STEP, (), [("edge", tensor)], wants_receipt=False)
    taken = [receiver.take() for receiver in receivers]
    return taken, tensor.buffer.identity


def returned(taken):
    """Return what was taken."""
    for link, loans in taken:
        link.send(plain(Returned(tuple(loan.number for loan in loans))))


def free_identities(buffers):
    """All objects through which the next tensors could go, and some new ones."""
    tensors = [buffers.write("edge", np.zeros(200_000)) for _ in range(9)]
    return [tensor.buffer.identity for tensor in tensors]


def test_an_object_is_written_anew_when_all_receivers_have_returned_it(sender):
    buffers, receivers = sender
    taken, identity = lend(buffers, 1, *receivers)
    assert identity not in free_identities(buffers)
    returned(taken[:1])
    receivers[0].is_heard()
    assert identity not in free_identities(buffers)
    returned(taken[1:])
    receivers[1].is_heard()
    assert identity in free_identities(buffers)


def test_a_tensor_that_changes_its_size_takes_no_more_room_the_longer_it_does(ray_local):
    from tfray.actors.links.loans import StoreBuffers

    buffers, before = StoreBuffers(), stored_bytes(ray_local)
    sizes = np.random.default_rng(0).integers(1 << 17, 1 << 22, 100)
    for size in sizes:
        tensor = buffers.write("edge", np.full(size, 7, np.uint8))
        np.testing.assert_array_equal(tensor.buffer.array(tensor.dtype, tensor.shape), np.full(size, 7, np.uint8))
        del tensor
    buffers.clear()
    wait_for_store(ray_local, before)
    for size in sizes[:20]:
        buffers.write("edge", np.zeros(size, np.uint8))
    wait_for(lambda: stored_bytes(ray_local) - before <= 3 * (1 << 22))


@pytest.mark.parametrize("sends_the_room", [True, False])
def test_what_is_computed_in_its_room_is_lent_as_it_is(ray_local, sends_the_room):
    from tfray.actors.links.loans import Loans
    from tfray.actors.links.object_rendezvous import ObjectRendezvous
    from tfray.actors.links.peers import PeerHandle, Peers
    from tfray.actors.links.shared_objects import find

    peers = Peers("node", Loans(PS))
    receiver = Receiver(peers.loans)
    peers.learn({WORKERS[0]: PeerHandle(None, receiver.server.address, KEY)})
    rendezvous = ObjectRendezvous(StepRequest(STEP, 0), peers, np.asarray)
    room = rendezvous.room("edge", WORKERS[0], (ROWS, ROW), np.dtype(np.float32))
    room[...] = 1
    rendezvous.send("edge", WORKERS[0], room if sends_the_room else room + 1)
    rendezvous.flush()
    _, (loan,) = receiver.take()
    (mapped,) = find([(loan.identity, loan.owner, loan.status)])
    room[...] = 3
    assert set(mapped.view(np.float32).tolist()) == ({3} if sends_the_room else {2})
    assert rendezvous.room("small", WORKERS[0], (2,), np.dtype(np.float32)).flags.owndata
    rendezvous.close()
    del room, mapped
    receiver.close()
    peers.close()
    peers.loans.buffers.clear()


def test_a_kernel_that_fails_gives_its_room_back(ray_local, cluster):
    """The error comes after the memory in the store has been taken."""
    number = tf.placeholder(tf.int32, [])
    with tf.device(PS):
        sent = tf.fill([ROWS, ROW], 12) // number
    with tf.device(WORKERS[0]):
        received = tf.reduce_max(sent)
    with tf.Session(cluster) as session:
        assert session.run(received, {number: 3}) == 4
        held = stored_bytes(ray_local)
        for _ in range(10):
            with pytest.raises(OpError, match="zero"):
                session.run(received, {number: 0})
        assert session.run(received, {number: 2}) == 6
        assert stored_bytes(ray_local) - held <= 2 * BYTES


def test_a_receiver_is_told_where_an_object_is_until_it_has_mapped_it(sender):
    buffers, (receiver, _) = sender
    taken, identity = lend(buffers, 1, receiver)
    returned(taken)
    receiver.is_heard()
    lent = [lend(buffers, number, receiver)[0] for number in range(10)]
    known = {loan.identity: not loan.owner for ((_, (loan,)),) in lent}
    assert known[identity] and not all(known.values())


def test_an_object_is_not_written_where_a_receiver_may_read_it_whose_link_has_closed(sender):
    buffers, (first, second) = sender
    taken, identity = lend(buffers, 1, first, second)
    returned(taken[1:])
    first.peer.close()
    first.closed.get(timeout=PATIENCE_S)
    for _ in range(5):
        assert identity not in free_identities(buffers)


def test_the_number_of_another_process_returns_nothing(sender):
    buffers, receivers = sender
    taken, identity = lend(buffers, 1, *receivers)
    for link, loans in taken:
        link.send(plain(Returned(tuple(loan.number + 1_000_000 for loan in loans))))
    for receiver in receivers:
        receiver.is_heard()
    assert identity not in free_identities(buffers)


def test_objects_that_are_not_used_are_let_go(sender, monkeypatch):
    from tfray.actors.links import loans

    buffers, (receiver, _) = sender
    monkeypatch.setattr(loans, "KEPT_S", 0.0)
    taken, identity = lend(buffers, 1, receiver)
    returned(taken)

    def is_unmapped():
        buffers.tidy()
        return not receiver.messages.empty()

    wait_for(is_unmapped)
    _, header, _ = receiver.messages.get(timeout=PATIENCE_S)
    assert read(header) == Unmap(identity)


def test_an_object_in_use_is_let_go_when_it_is_given_back_after_all_were_dropped(ray_local, sender):
    """Nothing else happens in the process meanwhile: its session has ended."""
    buffers, receivers = sender
    returned(lend(buffers, 1, *receivers)[0])  # it has links: whoever reads them tidies up
    tensor = buffers.write("other", np.ones(BYTES, np.uint8))
    buffers.clear()
    held = stored_bytes(ray_local)
    del tensor
    wait_for_store(ray_local, held - BYTES)


def test_borrowed_memory_is_returned_with_the_last_array_in_it(ray_local):
    from tfray.actors.links.loans import Lender, StoreBuffers

    returns = []

    class Link:
        def send(self, header):
            returns.append(header)

    tensor = StoreBuffers().write("edge", np.arange(200_000, dtype=np.float32).reshape(2, -1))
    lender = Lender(Link())
    (array,) = lender.borrow([tensor.loan(17, is_mapped=False)])
    part = array[1, 50:60].view(np.int32)
    np.testing.assert_array_equal(array, np.arange(200_000, dtype=np.float32).reshape(2, -1))
    assert not array.flags.writeable
    del array
    lender.give_back()
    assert returns == [] and not lender.has_all
    np.testing.assert_array_equal(part.view(np.float32), np.arange(100_050, 100_060))
    del part
    gc.collect()
    lender.give_back()
    assert returns == [plain(Returned((17,)))] and lender.has_all


def test_returns_that_could_not_be_sent_go_with_a_later_message(ray_local):
    from tfray.actors.links.loans import Lender, StoreBuffers

    tensor = StoreBuffers().write("edge", np.zeros(200_000))
    lender = Lender(None)
    assert lender.borrow([tensor.loan(17, is_mapped=False)])[0].size == 200_000  # and drop it
    lender.keep_returns(lender.take_returns())
    assert not lender.has_all
    assert lender.take_returns() == [17] and lender.take_returns() == [] and lender.has_all


@pytest.mark.parametrize("shape", [[200_001], [-1], [2, -5], [0]], ids=str)
def test_a_loan_that_does_not_lie_in_its_object_is_refused(ray_local, shape):
    from tfray.actors.links.loans import Lender, StoreBuffers

    tensor = StoreBuffers().write("edge", np.zeros(200_000, np.float32))
    loan = tensor.loan(1, is_mapped=False)
    with pytest.raises(ValueError, match="does not lie in an object of 800000 bytes"):
        Lender(None).borrow([loan._replace(shape=shape)])
    with pytest.raises(ValueError, match="never been mapped"):
        Lender(None).borrow([Loan(1, b"another", "float32", (1,))])
