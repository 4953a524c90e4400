"""What a driver waits for: answers of devices, over links and to calls of Ray."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from tfray.actors.links import ray_calls
from tfray.actors.links.frames import encode
from tfray.actors.links.messages import RunStep, StepCall, StepWord, plain
from tfray.actors.links.peer_link import Arrivals, read_until
from tfray.actors.links.peers import Kept, Outcome, Peer
from tfray.errors import OpError

_TURN_S: Final = 0.005
"""How long each kind of answer is waited for in turn, when there are both."""


class LinkAnswer:
    """The answer to a message over a link, as Ray's reference is that to a call.

    Args:
        peer: The actor that is asked.
        ended: Takes the answer when it has come.
        number: Of the call.
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
        """Send the question. Returns False if nothing will come of it."""
        return self._peer.post(self._number, frame)

    def forget(self) -> None:
        """Wait for it no longer."""
        self._peer.forget(self._number)

    def outcome(self) -> Outcome:
        """The answer, which has come. Raises what Ray raises when it must be fetched."""
        assert self._outcome is not None
        status, value = self._outcome
        if isinstance(value, Kept):
            fetched: Outcome = ray_calls.outcome(self._peer.handle.actor.collect.remote(value.token), self._peer.device)
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

    def wait(self, pending: Collection[Any], timeout_s: float, several: int = 1) -> list[Any]:
        """Wait for answers.

        Args:
            pending: The `LinkAnswer` and references of which one must be there; others are dropped.
            timeout_s: Wait no longer.
            several: Wait for so many, if they all come over links; but not beyond the first error.

        Returns:
            Those that are there.
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


def unpack(answer: Any, device: str, timeout_s: float | None = None) -> Any:
    """The value of an answer.

    Raises:
        OpError: That with which the device answered.
        UnavailableError: The actor is dead.
        DeadlineExceededError: No answer came within `timeout_s`.
    """
    status, value = answer.outcome() if isinstance(answer, LinkAnswer) else ray_calls.outcome(answer, device, timeout_s)
    if status == "error":
        assert isinstance(value, OpError)
        raise value
    return value


def tell(peer: Peer, word: StepWord) -> None:
    """Send a device a word about a step."""
    if not peer.tell(word):
        peer.handle.actor.tell.remote(word)
