"""Sessions on device hosts in one process, where a test decides which thread or frame moves next.

The hosts, peers, sessions and their messages are the real ones. Links are queues of frames, and threads that run steps
stop before and after each frame that they send, and where they wait for answers. `Conductor.play` lets one of them
go on, or delivers one frame, as `choose` says, until all are through. When nobody can move and somebody still waits,
that is a hang, and an error.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import ExitStack
from unittest.mock import patch

import tfray as tf
from tfray.actors.clusters.directory import ActorDirectory
from tfray.actors.clusters.remote_runner import RemoteRunner
from tfray.actors.devices.device_host import DeviceHost
from tfray.actors.links import awaited_answers, peers
from tfray.actors.links.frames import LENGTH, decode, encode
from tfray.actors.links.handshake import LinkAddress
from tfray.actors.links.messages import PlanId
from tfray.actors.links.peers import PeerHandle
from tfray.ops.system.script_ops import register_function

LONGEST_MOVE_S = 120.0
"""No thread runs longer between two stops."""


class Hang(AssertionError):
    """Nobody can move, and somebody waits."""


class _Performer:
    """A thread that stops where the conductor wants it to."""

    def __init__(self, function):
        self.go_on, self.stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.can_move = lambda: True
        self.is_through = False
        self.error = None
        self._function = function
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        self.go_on.acquire()
        try:
            self._function()
        except BaseException as error:  # noqa: BLE001 (for `play` to raise)
            self.error = error
        self.is_through = True
        self.stopped.release()

    def stop(self, can_move=lambda: True):
        self.can_move = can_move
        self.stopped.release()
        self.go_on.acquire()

    def move(self):
        self.go_on.release()
        assert self.stopped.acquire(timeout=LONGEST_MOVE_S), "a thread waits where the conductor cannot see it"


class _Link:
    """One direction of a link: frames wait until they are delivered."""

    def __init__(self, conductor, handle):
        self.conductor, self.handle = conductor, handle
        self.frames = deque()
        self.other = None

    def send(self, header, tensors=()):
        self.send_frame(encode(header, tensors))

    def send_frame(self, data):
        self.conductor.stop()
        self.frames.append(data)
        self.conductor.stop()

    def deliver(self):
        data = self.frames.popleft()
        self.handle(self.other, *decode(data[LENGTH.size :]))

    def close(self):
        self.frames.clear()


class Conductor(ActorDirectory):
    """A session's target: hosts of the devices that are named, whose messages wait to be delivered."""

    def __init__(self, *devices):
        super().__init__()
        self._links = []
        self._performers = []
        self._by_thread = {}
        self._patches = ExitStack()
        self._patches.enter_context(patch.object(peers, "open_link", self._open_link))
        self._patches.enter_context(patch.object(awaited_answers, "read_until", self._read_until))
        self._hosts = {device: DeviceHost(device, "node") for device in devices}
        for host in self._hosts.values():
            host.peers.learn({device: self.handle(device) for device in devices})
        self._known = peers.Peers("node")
        self._known.learn({device: self.handle(device) for device in devices})

    # -- as a cluster ----------------------------------------------------------------------------

    @property
    def devices(self):
        return list(self._hosts)

    def handle(self, device):
        return PeerHandle(None, LinkAddress("node", device, "", 0), b"key")

    def peer(self, device):
        return self._known[device]

    def introduce(self, devices):
        pass

    def runner(self, jobs=None):
        return _Runner(self, jobs)

    def release(self, runner):
        pass

    def _let_go(self):
        self._patches.close()

    def hosts(self):
        return self._hosts

    # -- links -----------------------------------------------------------------------------------

    def _open_link(self, address, key, node, handle, ended):
        host = self._hosts[address.path]
        here, there = _Link(self, host.take_message), _Link(self, handle)
        here.other, there.other = there, here
        self._links += [here, there]
        return here

    def _read_until(self, arrivals, timeout_s):
        self.stop(lambda: arrivals.is_enough)
        return arrivals.take()

    # -- the performance -------------------------------------------------------------------------

    def stop(self, can_move=lambda: True):
        """The calling thread moves on when the conductor lets it. Others, those of hosts, do not stop."""
        performer = self._by_thread.get(threading.get_ident())
        if performer is not None:
            performer.stop(can_move)

    def play(self, functions, choose=lambda count: 0):
        """Run functions on a thread each, and deliver what is sent, one move at a time.

        Args:
            functions: What the threads do.
            choose: Called with a number of possible moves; returns which comes next.
        """
        performers = [_Performer(function) for function in functions]
        for performer in performers:
            performer.thread.start()
            self._by_thread[performer.thread.ident] = performer
        while True:
            moves = [each.move for each in performers if not each.is_through and each.can_move()]
            moves += [link.deliver for link in self._links if link.frames]
            if not moves:
                break
            moves[choose(len(moves))]()
        stuck = sum(not each.is_through for each in performers)
        for each in performers:
            if each.error is not None:
                raise each.error
        if stuck:
            raise Hang(f"{stuck} of {len(performers)} threads wait for ever")


class _Runner(RemoteRunner):
    """A runner whose devices are in this process. Their plans are prompt from the start: they need no threads."""

    def send_plans(self, partitions, functions):
        plan_id = PlanId(self.driver_id, str(len(self._plans)))
        for partition in partitions:
            host = self._cluster.hosts()[partition.device]
            host.register(plan_id, partition.to_plain(), dict(functions), [])
            for token, function in functions.items():
                register_function(token, function)
            host.plans[plan_id].turn_s = 0.0
        self._plans[plan_id] = [partition.device for partition in partitions]
        return plan_id

    def close(self):
        self._closed = True


def session_on(conductor):
    """A session whose steps run only while the conductor plays."""
    return tf.Session(conductor)
