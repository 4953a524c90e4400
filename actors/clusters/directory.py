"""The device actors of a cluster as one process knows them. Sessions on Ray run on these."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from tfray.actors.clusters.ray_runtime import connection, import_ray
from tfray.actors.links.silence import SILENT
from tfray.errors import CancelledError, UnavailableError
from tfray.formats.files import Closing
from tfray.framework.device_spec import DeviceSpec

if TYPE_CHECKING:
    from tfray.actors.links.peers import Peer, PeerHandle, Peers
    from tfray.runtime.runner import Runner


WATCH_S: Final = 0.5
"""Seconds between two questions to Ray which actors have died, at least."""

LATE_ANSWER_S: Final = 1.0
"""Seconds for which an answer may be on its way in this process, which may have been stopped itself."""


class ActorDirectory(Closing):
    """Finds the actors of devices. The process must be connected to Ray before one is made.

    Args:
        silence_s: Seconds after which an actor that answers nothing at all is waited for no longer; None for no limit.
    """

    def __init__(self, silence_s: float | None = None) -> None:
        self._silence_s = silence_s
        self._questions: dict[str, tuple[Any, Any, float]] = {}
        """By device: its actor, the last call that only asks whether it answers, and when that was made."""
        self._ray = import_ray()
        self._connection = connection()
        self._actors: dict[str, Any] = {}
        self._peers: Peers | None = None
        self._lifelines: dict[Any, Peer] = {}
        """Peers by Ray's reference to a call of `live`, which ends only when the peer's actor dies."""
        self._watched_at = 0.0
        self._runners: list[Runner] = []
        self._lock = threading.Lock()
        self._closing = threading.RLock()
        self._closed = False

    @property
    @abstractmethod
    def devices(self) -> list[str]:
        """Full names of the devices; the default device comes first, parameter servers last."""

    @abstractmethod
    def handle(self, device: str) -> PeerHandle:
        """How processes reach the actor of a device. Raises `UnavailableError` when it is gone."""

    @property
    def known(self) -> list[str]:
        """The devices whose actors this process has found."""
        return list(self._actors)

    @property
    def connected(self) -> bool:
        """Whether this process still has the connection to Ray under which the actors were made."""
        return self._connection == connection()

    def check_connected(self) -> None:
        """Raise `UnavailableError` unless `connected`."""
        if not self._closed and not self.connected:
            raise UnavailableError(
                "Ray was shut down in this process, and the cluster's actors with it: make a new one"
            )

    def actor(self, device: str) -> Any:
        """The Ray actor handle of a device. Raises `UnavailableError` when it is gone."""
        self._check_open()
        try:
            return self._actors[device]
        except KeyError:
            raise UnavailableError(f"the cluster has no device {device}; it has {', '.join(self.devices)}") from None

    def peer(self, device: str) -> Peer:
        """The actor of a device, for sending to it over a link."""
        if self._peers is not None and not self._closed:
            known = self._peers.get(device)
            if known is not None:
                return known
        from tfray.actors.links.peers import Peers

        self.actor(device)  # raises if it is gone
        with self._lock:
            if self._peers is None:
                self._peers = Peers(self._ray.get_runtime_context().get_node_id())
            if device not in self._peers:
                self._peers.learn({device: self.handle(device)})
                self._lifelines[self._actors[device].live.remote()] = self._peers[device]
            return self._peers[device]

    def watch(self) -> None:
        """Ask Ray now and then which actors have died, and end the calls that wait for them. Waiting threads call this.

        A process that ends closes its links. Links of a machine that is cut off stay open: for how long is up to TCP.
        But Ray declares the machine's node dead.
        """
        now = time.monotonic()
        if now - self._watched_at < WATCH_S or not self._lifelines or not self.connected:
            return
        self._watched_at = now
        with self._lock:
            lives = list(self._lifelines)
            dead, _ = self._ray.wait(lives, num_returns=len(lives), timeout=0, fetch_local=False)
            peers = [self._lifelines.pop(ref) for ref in dead]
        for peer in peers:
            peer.died()

    def check_answers(self, devices: Collection[str], what: Callable[[], str]) -> None:
        """Ask those that a thread waits for whether they answer at all. Waiting threads call this now and then.

        However long an actor is at work, it answers such a question at once. A process that is frozen does not.

        Args:
            devices: Full names of the devices.
            what: Returns what is waited for, for the message.

        Raises:
            UnavailableError: One of them has answered nothing for `silence_s` seconds.
        """
        if self._silence_s is None or not self.connected:
            return
        for device in devices:
            silent_s = self._silent_s(device)
            if silent_s > self._silence_s:
                raise UnavailableError(
                    f"{device} has answered nothing for {silent_s:.0f} s: {SILENT}; {what()} is waited for no longer",
                    device=device,
                )

    def _silent_s(self, device: str) -> float:
        """For how long a question to a device has had no answer."""
        with self._lock:
            actor = self._actors.get(device)
            asked, call, since = self._questions.get(device, (None, None, 0.0))
            silent_s = time.monotonic() - since
            if actor is None or (asked is actor and silent_s < WATCH_S):
                return 0.0
            patience_s = LATE_ANSWER_S if self._silence_s is not None and silent_s > self._silence_s else 0
            if asked is actor and not self._ray.wait([call], timeout=patience_s, fetch_local=False)[0]:
                return silent_s
            self._questions[device] = actor, actor.clock.remote(), time.monotonic()
            return 0.0

    @abstractmethod
    def introduce(self, devices: Sequence[str]) -> None:
        """Make sure that the actors of these devices can reach one another. They take part in one step."""

    @abstractmethod
    def runner(self) -> Runner:
        """A new `Runner` over the devices; every session has its own."""

    def _opened(self, runner: Runner) -> None:
        """Note a runner: it is closed with the cluster, if not before."""
        self._check_open()
        self._runners.append(runner)

    def release(self, runner: Runner) -> None:
        """Forget a runner that has been closed."""
        if runner in self._runners:
            self._runners.remove(runner)

    def reset(self, containers: Collection[str]) -> None:
        """End the sessions on the devices, and drop what is in containers; see `tf.Session.reset`."""
        self._check_open()
        self.introduce(self.devices)
        calls = []
        for device in self.devices:
            # What names no container is in that of the job, as in TensorFlow.
            own = DeviceSpec.from_string(device).job
            names = None if not containers else {"" if name == own else name for name in containers}
            calls.append(self.actor(device).reset.remote(names))
        self._ray.get(calls)

    def close(self) -> None:
        """End the steps of all sessions, and release the actors."""
        with self._closing:
            if self._closed:
                return
            try:
                for runner in list(self._runners):
                    runner.close()
            finally:
                self._closed = True
                if self._peers is not None:
                    self._peers.close()
                if self.connected:
                    self._let_go()

    @abstractmethod
    def _let_go(self) -> None:
        """Release the actors. All sessions have ended, and the process is connected to Ray."""

    def _check_open(self) -> None:
        if self._closed:
            raise CancelledError("the cluster is closed")
