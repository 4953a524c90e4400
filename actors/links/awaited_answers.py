"""The answers of devices that a driver waits for: those over links, and those to calls of Ray."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from tfray.actors.links import ray_calls
from tfray.actors.links.frames import encode
from tfray.actors.links.messages import RunStep, StepCall, StepNotice, plain
from tfray.actors.links.peer_link import Arrivals, read_until
from tfray.actors.links.peers import Outcome, Peer, Uncollected
from tfray.errors import OpError, UnavailableError

_TURN_S: Final = 0.005
"""Seconds to wait for answers over links, before a look at those of Ray, in turn. No single wait covers both kinds."""

_FETCH_S: Final = 0.5
"""Seconds between two looks at the device from which a large value is fetched."""


class LinkAnswer:
    """A handle of the answer to a message over a link, as Ray's reference is one of the answer to a call.

    Args:
        peer: The actor that is asked.
        ended: Takes this handle when the answer has come.
        number: Number of the call.
    """

    def __init__(self, peer: Peer, ended: Arrivals[LinkAnswer], number: int) -> None:
        self._peer = peer
        self._ended = ended
        self._number = number
        self._outcome: Outcome | None = None

    def take(self, outcome: Outcome) -> None:
        """Take the answer. Called once, on any thread."""
        self._outcome = outcome
        self._ended.add(self)
        if outcome[0] == "error":
            self._ended.is_urgent = True

    def ask(self, frame: bytes) -> bool:
        """Send the message. Returns False if it was not sent."""
        return self._peer.post(self._number, frame)

    def forget(self) -> None:
        """Wait for it no longer."""
        self._peer.forget(self._number)

    def outcome(self, waiting: Callable[[], None] | None = None) -> Outcome:
        """The answer, once it has come. A large value is fetched by a call of Ray, and this raises what that raises.

        Args:
            waiting: Called now and then while the value is fetched; what it raises ends the wait.
        """
        assert self._outcome is not None
        status, value = self._outcome
        if isinstance(value, Uncollected):
            call = self._peer.handle.actor.collect.remote(value.token)
            while waiting is not None and not ray_calls.ended([call], _FETCH_S):
                waiting()
            fetched: Outcome = ray_calls.outcome(call, self._peer.device)
            return fetched
        return status, value


class Answers:
    """Answers of both kinds, waited for together. For one thread."""

    def __init__(self) -> None:
        self._ended: Arrivals[LinkAnswer] = Arrivals()

    def ask(self, peer: Peer, call: StepCall, frame: bytes) -> LinkAnswer | None:
        """Ask a device over its link for a step, with the `frame_of` the call; None where there is no link."""
        answer = self.expect(peer, call)
        return answer if answer is not None and answer.ask(frame) else None

    def expect(self, peer: Peer, call: StepCall) -> LinkAnswer | None:
        """Await the answer of a device to a call before it is asked; None where there is no link."""
        answer = LinkAnswer(peer, self._ended, call.number)
        return answer if peer.expect(call.number, answer.take) else None

    def unavailable(self, peer: Peer, call: StepCall) -> LinkAnswer:
        """The answer of a device that cannot be asked, because the link to it is lost. It has come already."""
        answer = LinkAnswer(peer, self._ended, call.number)
        answer.take(("error", UnavailableError(f"the connection to {peer.device} is lost", device=peer.device)))
        return answer

    def wait(self, pending: Collection[Any], timeout_s: float, several: int = 1) -> list[Any]:
        """Wait for answers.

        Args:
            pending: The answers to wait for, `LinkAnswer` and Ray's references. Other answers that come are dropped.
            timeout_s: Wait at most for so many seconds.
            several: Wait for so many answers if all come over links; otherwise for one. An error ends the wait.

        Returns:
            Those of `pending` that have come.
        """
        refs = [item for item in pending if not isinstance(item, LinkAnswer)]
        if not refs:
            return self._linked(pending, timeout_s, several)
        if len(refs) == len(pending):
            return ray_calls.ended(refs, timeout_s)
        for _ in range(max(1, int(timeout_s / _TURN_S))):
            done = self._linked(pending, _TURN_S) + ray_calls.ended(refs, 0)
            if done:
                return done
        return []

    def _linked(self, pending: Collection[Any], timeout_s: float, several: int = 1) -> list[Any]:
        self._ended.enough = several
        return [answer for answer in read_until(self._ended, timeout_s) if answer in pending]


def frame_of(call: StepCall, feeds: Sequence[Any] = ()) -> bytes:
    """The message with which a driver asks a device for a step."""
    return encode(plain(RunStep(call.to_bytes())), feeds)


def unpack(answer: Any, device: str, timeout_s: float | None = None, waiting: Callable[[], None] | None = None) -> Any:
    """The value of an answer.

    Args:
        answer: The answer of a device: a `LinkAnswer`, which has come, or Ray's reference.
        device: Full name of the device.
        timeout_s: Seconds to wait for Ray's.
        waiting: See `LinkAnswer.outcome`.

    Raises:
        OpError: The error with which the device answered.
        UnavailableError: The actor is dead.
        DeadlineExceededError: No answer came within `timeout_s`.
    """
    is_linked = isinstance(answer, LinkAnswer)
    status, value = answer.outcome(waiting) if is_linked else ray_calls.outcome(answer, device, timeout_s)
    if status == "error":
        assert isinstance(value, OpError)
        raise value
    return value


def tell(peer: Peer, notice: StepNotice) -> None:
    """Send a device a message about a step, over its link or else by a call of Ray."""
    if not peer.tell(notice):
        peer.handle.actor.tell.remote(notice)
