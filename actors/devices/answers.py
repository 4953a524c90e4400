"""What a device answers those who have asked for something."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tfray.actors.devices.combining import Told
from tfray.actors.links.frames import encode
from tfray.actors.links.messages import Answer, ErrorReport, plain
from tfray.actors.links.object_rendezvous import ObjectRendezvous
from tfray.actors.links.peer_link import Link
from tfray.errors import OpError, UnavailableError


def send_answer(link: Link, answer: Answer, tensors: Sequence[Any] = ()) -> None:
    """Send an answer to the process that asked, unless that is gone."""
    with suppress(OSError):
        link.send_frame(encode(plain(answer), tensors))


def teller(link: Link, number: int) -> Told:
    """Answers a message of contributions when it is known what became of them."""

    def told(error: OpError | None) -> None:
        send_answer(link, Answer(number, None if error is None else ErrorReport.of(error)))

    return told


def missed_shard(rendezvous: ObjectRendezvous, timeout_s: float | None) -> str:
    """Wait until shards have taken what a replica sent. Returns one that is gone, while the others have; or ``""``."""
    try:
        rendezvous.wait_until_received(timeout_s)
    except UnavailableError as error:
        if error.device is None:
            raise
        return error.device
    return ""
