"""Links between actors: frames, the handshake, and how they end."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from multiprocessing import AuthenticationError

import ml_dtypes
import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.processes import PATIENCE_S, wait_for
from tests.support.waiting import Task
from tfray.actors.links import messages, peer_link
from tfray.actors.links.carriers import fits
from tfray.actors.links.frames import LENGTH, FrameReader, decode, encode
from tfray.actors.links.handshake import LinkAddress, RefusalLog
from tfray.actors.links.messages import (
    MESSAGES,
    Answer,
    Combiner,
    Deliver,
    ErrorReport,
    PlanId,
    StepCall,
    StepKey,
    StepRequest,
    Unmap,
    plain,
)
from tfray.actors.links.notices import notice
from tfray.actors.links.peer_link import MAX_STRANGERS, Arrivals, LinkReader, LinkServer, open_link, read_until
from tfray.actors.links.peers import Peer, PeerHandle
from tfray.errors import DataLossError, InvalidArgumentError, UnavailableError, UnknownError

KEY = b"k" * 32
DELIVER = Deliver(StepKey("driver", 7), (1,), ("x:0 /job:ps/task:0 -> /job:worker/task:0",))
TENSORS = [
    np.float32(3.5),
    np.arange(6, dtype=np.int64).reshape(2, 3),
    np.zeros((0, 4), np.float64),
    np.array([True, False]),
    np.array([1, 2], ml_dtypes.bfloat16),
    np.array([1 + 2j], np.complex64),
    np.array([[b"a", b""], [b"\xff\x00", b"long " * 100]], object),
    np.array(b"alone", object),
    np.arange(4099, dtype=np.int8),
    np.arange(2000, dtype=np.float64).reshape(20, 100),
    np.array([b"one of many"] * 5000, object),
    np.full(300, 1j, np.complex128),
]


# -- frames ----------------------------------------------------------------------------------------------


def body(header, tensors=()):
    """What follows the length of a frame."""
    return encode(header, tensors)[LENGTH.size :]


def test_tensors_come_back():
    header, tensors = decode(body({"do": "deliver", "keys": ["a"]}, TENSORS))
    assert header == {"do": "deliver", "keys": ("a",)}
    for sent, came in zip(TENSORS, tensors, strict=True):
        assert np.shape(came) == np.shape(sent) and came.dtype == sent.dtype
        np.testing.assert_array_equal(came, sent)
        assert not isinstance(came, np.ndarray) or came.dtype == object or came.flags.aligned


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.data())
def test_frames_come_back_whatever_the_pieces(sizes, data):
    stream = b"".join(encode({"size": size}, [np.arange(size, dtype=np.int16)]) for size in sizes)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    frames = []
    reader = FrameReader(lambda frame: frames.append(decode(frame)))
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        piece = memoryview(stream)[start:end]
        while len(piece) and reader.wanted is not None and data.draw(st.booleans()):
            count = min(len(piece), len(reader.wanted))
            reader.wanted[:count] = piece[:count]
            reader.filled(count)
            piece = piece[count:]
        reader.feed(piece)
    assert [(header["size"], tensor.tolist()) for header, (tensor,) in frames] == [
        (size, list(range(size))) for size in sizes
    ]


def test_a_length_that_makes_no_sense():
    for length in (0, 1 << 31):
        with pytest.raises(DataLossError, match="malformed frame"):
            FrameReader(lambda frame: None).feed(memoryview(struct.pack("<I", length)))


@pytest.mark.parametrize("value", TENSORS)
def test_small_tensors_fit(value):
    assert fits(value)


@pytest.mark.parametrize(
    "value", [np.zeros(1 << 20), np.array([1, "a"], object), np.array(["text"]), [1, 2], {"a": 1}, None, object()]
)
def test_other_values_do_not(value):
    assert not fits(value)


@pytest.mark.fault(
    "Strangers",
    "A peer sends damaged frames.",
    happens="The connection ends, and what waits for it raises.",
    promise="Damaged bytes are refused or harmless.",
)
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_frames_are_refused_or_harmless(data):
    frame = bytearray(body(plain(DELIVER), TENSORS))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    frame = frame[: data.draw(st.integers(0, len(frame)))] if data.draw(st.booleans()) else frame
    try:
        header, tensors = decode(bytes(frame))
    except DataLossError:
        return
    with contextlib.suppress(DataLossError):
        assert isinstance(messages.read(header), MESSAGES)
    assert sum(np.asarray(tensor).nbytes for tensor in tensors) <= 16 * len(frame)


@pytest.mark.parametrize(
    "value",
    [
        [],
        [{}],
        [{}, [["float32", [1000000000000], b"1234"]]],
        [{}, [["float32", [-1], b"1234"]]],
        [{}, [["float32", None, b"12345678"]]],
        [{}, [["float32", [1], b"123"]]],
        [{}, [["float32", [1], None]]],
        [{}, [["resource", [1], b"1234"]]],
        [{}, [["string", [2], [b"one"]]]],
        [{}, [["string", [1], ["text"]]]],
        [{}, [["no dtype", [1], b"1234"]]],
        [{}, [[["float32"], [1], b"1234"]]],
        [{}, [["float32", [1], 4]]],
        [{}, [["float32", [1], -4]]],
        [{}, [["string", [1], 4]]],
        {"a": 1},
        17,
        msgpack.ExtType(4, b"code"),
    ],
)
def test_frames_that_make_no_sense(value):
    packed = msgpack.packb(value)
    with pytest.raises(DataLossError, match="malformed frame"):
        decode(LENGTH.pack(len(packed)) + packed)


@pytest.mark.parametrize(("declared", "missing"), [(8192, 8), (8188, 0), (-8, 0), (1 << 40, 0)])
def test_raw_data_must_be_all_there(declared, missing):
    packed = msgpack.packb([{}, [["float64", [1024], declared]]])
    start = LENGTH.size + len(packed)
    frame = LENGTH.pack(len(packed)) + packed + bytes(-start % 16 + 8192 - missing)
    with pytest.raises(DataLossError, match="malformed frame"):
        decode(frame)


@pytest.mark.parametrize("data", [b"", b"\x91" * 100_000, b"\xc6\xff\xff\xff\xff", b"\xc1", b"\x92\x80\x90more"])
def test_what_is_no_message_pack(data):
    for frame in (data, LENGTH.pack(len(data)) + data):
        with pytest.raises(DataLossError, match="malformed frame"):
            decode(frame)


# -- streams ---------------------------------------------------------------------------------------------


@pytest.fixture
def echo():
    """A server that sends back what it gets, and the ends that it has noticed."""
    ends = queue.SimpleQueue()
    server = LinkServer(KEY, "node", "127.0.0.1", lambda link, header, tensors: link.send(header, tensors), ends.put)
    yield server, ends
    server.close()


class Frames(Arrivals):
    """Frames that have arrived."""

    def get(self, timeout):
        """The next, which the reader's own thread reads."""
        first, *others = self.take(timeout)
        for other in others:
            self.add(other)
        return first


def connect(address, key=KEY, node="node"):
    frames, ends = Frames(), queue.SimpleQueue()
    link = open_link(address, key, node, lambda _, header, tensors: frames.add((header, tensors)), ends.put)
    return link, frames, ends


@pytest.mark.parametrize("node", ["node", "another node"])
def test_over_unix_sockets_and_tcp(echo, node):
    server, ends = echo
    link, frames, own_ends = connect(server.address, node=node)
    for number in range(100):
        link.send({"number": number}, [np.full(number, number)])
    for number in range(100):
        header, (tensor,) = frames.get(timeout=PATIENCE_S)
        assert header == {"number": number} and tensor.tolist() == [number] * number
    link.close()
    assert own_ends.get(timeout=PATIENCE_S) is link
    assert ends.get(timeout=PATIENCE_S) is not None
    with pytest.raises(OSError):
        link.send({}, [])


def test_two_that_send_to_each_other_at_once_do_not_block(echo):
    server, _ = echo
    link, frames, _ = connect(server.address)
    large = np.zeros(30_000)
    sender = threading.Thread(target=lambda: [link.send({}, [large]) for _ in range(200)])
    sender.start()  # far more than a socket's buffers hold, and all of it comes back
    for _ in range(200):
        assert frames.get(timeout=PATIENCE_S)[1][0].shape == large.shape
    sender.join(PATIENCE_S)
    assert not sender.is_alive()


def read(frames, timeout_s=PATIENCE_S):
    """What `read_until` gives, however often it has to be asked."""
    ends = time.monotonic() + timeout_s
    while time.monotonic() < ends:
        if found := read_until(frames, 0.001):
            (frame,) = found
            return frame
    raise AssertionError("nothing came")


def test_however_many_wait_somebody_reads(echo):
    """The first that waits reads for all; none is left waiting when that one leaves, for want of time or otherwise."""
    server, _ = echo

    def converse(rounds):
        link, frames, _ = connect(server.address)
        for number in range(rounds):
            link.send({"number": number})
            assert read(frames)[0] == {"number": number}
        link.close()
        return True

    for rounds in (200, 1, 50):
        tasks = [Task(converse, rounds * (1 + index % 3)) for index in range(12)]
        assert all(task.result() for task in tasks)


def test_an_interruption_does_not_lose_messages(echo):
    server, _ = echo
    link, frames, _ = connect(server.address)
    link.send({"number": 0})
    assert read(frames)[0] == {"number": 0}
    main = threading.main_thread().ident
    interrupting = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        interrupting.start()
        read_until(Arrivals(), PATIENCE_S)
    for number in range(50):
        link.send({"number": number})
        assert read(frames)[0] == {"number": number}
    link.close()


@pytest.mark.fault(
    "Strangers",
    "Somebody without the key connects to an actor.",
    happens="The connection is refused, and a line tells of it.",
    promise="Nothing that strangers send is used.",
)
def test_a_stranger_is_refused(echo, capfd):
    server, ends = echo
    with pytest.raises(AuthenticationError):
        connect(server.address, key=b"x" * 32)
    assert ends.empty()
    link, frames, _ = connect(server.address)
    link.send({"still": "there"})
    assert frames.get(timeout=PATIENCE_S)[0] == {"still": "there"}
    link.close()


@pytest.mark.fault(
    "Strangers",
    "Very many strangers connect, say nothing, or speak slowly.",
    happens="Their connections are closed.",
    promise="Those with the key get through.",
)
def test_who_does_not_speak_is_not_waited_for(echo):
    server, _ = echo
    silent = socket.create_connection((server.address.host, server.address.port))
    link, frames, _ = connect(server.address, node="another node")
    link.send({"others": "go on"})
    assert frames.get(timeout=PATIENCE_S)[0] == {"others": "go on"}
    silent.settimeout(PATIENCE_S)
    while silent.recv(1 << 10):  # the challenge, then the end
        pass
    silent.close()
    link.close()


def relay(listener, target):
    """Pass on, byte by byte, what two ends say to each other, as somebody between them would."""
    near, _ = listener.accept()
    far = socket.create_connection((target.host, target.port))

    def pass_on(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 10):
                sink.sendall(data)
        for stream in (source, sink):
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    threads = [threading.Thread(target=pass_on, args=ends, daemon=True) for ends in ((near, far), (far, near))]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.fault(
    "Strangers",
    "Somebody in between passes a handshake on to another actor.",
    happens="The connection is refused.",
    promise="A proof holds for one connection and one actor.",
)
@pytest.mark.parametrize("meant_for", ["the relay", "the actor behind it", "another actor"])
def test_a_handshake_that_is_passed_on_is_refused(echo, capfd, meant_for):
    """Both ends hold the key; what they prove holds for their own stream and the listener that was meant only."""
    server, ends = echo
    other = LinkServer(KEY, "node", "127.0.0.1", lambda *message: None, lambda link: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        between = Task(relay, listener, server.address)
        port = listener.getsockname()[1]
        meant = {
            "the relay": LinkAddress("elsewhere", "", "127.0.0.1", port),
            "the actor behind it": replace(server.address, port=port),
            "another actor": replace(other.address, port=port),
        }[meant_for]
        with pytest.raises((AuthenticationError, EOFError, OSError)):
            connect(meant, node="another node")
        for thread in between.result():
            thread.join(PATIENCE_S)
    assert ends.empty()
    other.close()


@pytest.mark.fault(
    "Strangers",
    "Very many strangers connect, say nothing, or speak slowly.",
    happens="Their connections are closed.",
    promise="Those with the key get through.",
)
def test_who_speaks_slowly_is_not_waited_for(monkeypatch, capfd):
    """The time is for the whole handshake: a byte now and then does not keep it open."""
    monkeypatch.setattr(peer_link, "HANDSHAKE_S", 0.5)
    server = LinkServer(KEY, "node", "127.0.0.1", lambda *message: None, lambda link: None)
    with socket.create_connection((server.address.host, server.address.port)) as slow:
        slow.settimeout(0.1)

        def is_given_up():
            try:
                slow.sendall(b"x")
                return not slow.recv(100)
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_for(is_given_up)
    server.close()


@pytest.mark.fault(
    "Strangers",
    "Very many strangers connect, say nothing, or speak slowly.",
    happens="Their connections are closed.",
    promise="Those with the key get through.",
)
def test_strangers_in_numbers_do_not_keep_a_peer_out(echo, capfd):
    server, _ = echo
    address = (server.address.host, server.address.port)
    strangers = [socket.create_connection(address) for _ in range(3 * MAX_STRANGERS)]
    assert len(server._strangers) <= MAX_STRANGERS
    link, frames, _ = connect(server.address, node="another node")
    link.send({"still": "there"})
    assert frames.get(timeout=PATIENCE_S)[0] == {"still": "there"}
    for stranger in strangers:
        stranger.close()
    link.close()
    wait_for(lambda: not server._strangers)
    assert capfd.readouterr().err.count("refused") <= 1


@pytest.mark.fault(
    "Machines and networks",
    "A process has no file descriptors left.",
    happens="New connections are refused until some are free, and a line tells of it.",
    promise="The process takes connections again by itself.",
)
def test_the_listener_outlives_a_process_without_descriptors(capfd):
    """Connections until nothing can be accepted: once some have gone, peers are taken again."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    ends = queue.SimpleQueue()
    server = LinkServer(KEY, "node", "127.0.0.1", lambda link, header, tensors: link.send(header, tensors), ends.put)
    program = (
        "import socket, sys\n"
        "streams = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(60)]\n"
        "print('connected', flush=True)\n"
        "sys.stdin.read()\n"
    )
    used = len(os.listdir("/proc/self/fd"))
    try:
        with subprocess.Popen(
            [sys.executable, "-c", program, str(server.address.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as strangers:
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, limits[1]))
            assert strangers.stdout.readline() == b"connected\n"
            said = ""

            def cannot_accept():
                nonlocal said
                said += capfd.readouterr().err
                return "cannot be accepted" in said

            wait_for(cannot_accept)
            strangers.stdin.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    link, frames, _ = connect(server.address, node="another node")
    link.send({"still": "there"})
    assert frames.get(timeout=PATIENCE_S)[0] == {"still": "there"}
    link.close()
    server.close()


@pytest.mark.fault(
    "Strangers",
    "Connections are refused again and again.",
    happens="The first is told; the others are counted, and told once a minute.",
    promise="The log does not fill up.",
)
def test_refusals_are_told_once_and_then_counted(capfd):
    began = time.monotonic()
    log = RefusalLog(every_s=0.3)
    for number in range(100):
        log.refused(f"stranger {number}")
    said = ""

    def counts():
        nonlocal said
        said += capfd.readouterr().err
        return [
            int(count) for count in re.findall(r"^tfray: refused (\d+) links in 0 s, the last: stranger", said, re.M)
        ]

    wait_for(lambda: sum(counts()) == 99)
    lines = said.splitlines()
    assert lines[0] == "tfray: refused a link: stranger 0" and lines[-1].endswith("the last: stranger 99")
    # Once for each interval; on a busy machine the refusals take more than one.
    assert len(lines) == 1 + len(counts()) <= 2 + (time.monotonic() - began) / 0.3


@pytest.mark.fault(
    "Strangers",
    "A peer sends damaged frames.",
    happens="The connection ends, and what waits for it raises.",
    promise="Damaged bytes are refused or harmless.",
)
def test_a_malformed_frame_closes_the_link(echo, capfd):
    server, ends = echo
    link, _, own_ends = connect(server.address)
    link.stream.send(b"\x04\x00\x00\x00 no!")
    assert own_ends.get(timeout=PATIENCE_S) is link
    assert ends.get(timeout=PATIENCE_S) is not None
    assert "malformed frame" in capfd.readouterr().err


# -- peers -----------------------------------------------------------------------------------------------


def test_calls_that_wait_end_when_the_peer_goes():
    links = queue.SimpleQueue()
    server = LinkServer(KEY, "node", "127.0.0.1", lambda link, header, tensors: links.put(link), lambda link: None)
    peer, outcomes = Peer("/job:ps/task:0", PeerHandle(None, server.address, KEY), "node"), queue.SimpleQueue()
    assert peer.send(7, encode(plain(Unmap(b"object"))), outcomes.put) == 7
    links.get(timeout=PATIENCE_S).close()
    status, error = outcomes.get(timeout=PATIENCE_S)
    assert status == "error" and isinstance(error, UnavailableError) and "/job:ps/task:0 died" in str(error)
    assert peer.is_lost
    # The process lives: only the connection was lost, and another one is made.
    assert peer.send(8, encode(plain(Unmap(b"object"))), outcomes.put) == 8 and not peer.is_lost
    server.close()
    links.get(timeout=PATIENCE_S).close()
    assert outcomes.get(timeout=PATIENCE_S)[0] == "error"
    assert peer.send(9, encode(plain(Unmap(b"object"))), outcomes.put) is None and peer.is_lost


def test_a_listener_that_has_ended_tells_of_no_more_refusals(capfd):
    log = RefusalLog(every_s=600)
    for number in range(3):
        log.refused(f"stranger {number}")
    log.close()
    log.refused("stranger 3")
    log.close()
    first, second = capfd.readouterr().err.splitlines()
    assert first.endswith("a link: stranger 0") and second.endswith("the last: stranger 2")
    wait_for(lambda: not any(getattr(thread, "interval", None) == 600 for thread in threading.enumerate()))


def test_the_late_answer_of_a_peer_that_was_given_up_is_no_error(capfd):
    """A frozen process may have answered before it was killed: its answer is read after its death is known."""
    links, outcomes, goes_on = queue.SimpleQueue(), queue.SimpleQueue(), threading.Event()
    server = LinkServer(KEY, "node", "127.0.0.1", lambda link, header, tensors: links.put(link), lambda link: None)
    peer = Peer("/job:ps/task:0", PeerHandle(None, server.address, KEY), "node")

    def hold_the_reader(outcome):
        outcomes.put(outcome)
        assert goes_on.wait(PATIENCE_S)

    peer.send(7, encode(plain(Unmap(b"object"))), hold_the_reader)
    peer.send(8, encode(plain(Unmap(b"object"))), outcomes.put)
    link, _ = (links.get(timeout=PATIENCE_S) for _ in range(2))
    link.send(plain(Answer(7)))
    assert outcomes.get(timeout=PATIENCE_S)[0] == "ok"
    link.send(plain(Answer(8)))
    peer.died()
    assert outcomes.get(timeout=PATIENCE_S)[0] == "error"
    goes_on.set()
    server.close()
    # The thread that reads has read the answer once it serves another link.
    other = LinkServer(KEY, "node", "127.0.0.1", lambda link, *_: link.send(plain(Answer(9))), lambda link: None)
    another = Peer("/job:ps/task:1", PeerHandle(None, other.address, KEY), "node")
    another.send(9, encode(plain(Unmap(b"object"))), outcomes.put)
    assert outcomes.get(timeout=PATIENCE_S)[0] == "ok"
    assert "internal error" not in capfd.readouterr().err
    another.close()
    other.close()


def test_no_link_where_nobody_listens():
    address = LinkAddress("node", "\0nobody listens here", "127.0.0.1", 1)
    peer = Peer("/job:ps/task:0", PeerHandle(None, address, KEY), "node")
    assert not peer.tell(Unmap(b"object"))


@pytest.mark.parametrize("error", [InvalidArgumentError("no", op_name="a", device="b", site="c"), UnknownError("x")])
def test_errors_come_back(error):
    back = ErrorReport.of(error).to_error()
    assert type(back) is type(error) and str(back) == str(error)


def test_errors_of_no_known_kind():
    assert type(ErrorReport("annotations", "?", None, None, None).to_error()) is UnknownError


def test_requests_come_back():
    served = StepKey("driver", 4, serves=True)
    combiner = Combiner("/job:worker", (0, 2), ("/job:ps",), 0.5)
    request = StepRequest(
        StepKey("driver", 3), 1, 0.5, 2, ("a", "b"), (0, 2), True, served, True, combiner, 2, False, 0
    )
    plan = PlanId("driver", "plan")
    for call in (
        StepCall(plan, request, 7),
        StepCall(plan.of_role("serving"), StepRequest(StepKey("d", 1), 0), 8),
    ):
        assert StepCall.from_bytes(call.to_bytes()) == call


def test_a_server_that_closes_ends_the_handshakes_with_it():
    server = LinkServer(KEY, "node", "127.0.0.1", lambda *message: None, lambda link: None)
    with socket.create_connection((server.address.host, server.address.port)) as stranger:
        stranger.settimeout(PATIENCE_S)
        server.close()
        with contextlib.suppress(ConnectionError):
            while stranger.recv(1 << 10):
                pass


def test_what_waits_for_an_idle_moment_is_done_without_links_too():
    """Memory that is given back after the last link has closed is let go of, and then the thread ends."""
    reader, turns = LinkReader("reader-without-links"), queue.SimpleQueue()
    reader.when_idle(lambda: turns.put(threading.current_thread()) or turns.qsize() < 2)
    wait_for(lambda: turns.qsize() == 2)
    turns.get().join(PATIENCE_S)
    assert not turns.get().is_alive()


@pytest.mark.parametrize("gone", ["closed", "closed below", "absent"])
def test_lines_for_the_terminal_find_another_stream(gone, monkeypatch, tmp_path):
    """A thread may speak when the program has closed the stream that it put in place of ``sys.stderr``."""
    number = os.open(tmp_path / "lines", os.O_CREAT | os.O_WRONLY)
    stream, first = None if gone == "absent" else os.fdopen(number, "w"), io.StringIO()
    if gone == "closed":
        stream.close()
    elif gone == "closed below":  # as while another thread closes it
        os.close(number)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "__stderr__", first)
    notice("a line")
    assert first.getvalue() == "tfray: a line\n"
    first.close()
    notice("another")
    if gone == "closed below":
        with contextlib.suppress(OSError):
            stream.close()
    elif gone == "absent":
        os.close(number)
