"""Calls of Ray to actors: what waits for their answers, and what their failures mean.

An answer is an outcome: ``("ok", value)``, or ``("error", OpError)`` with which the actor has answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray

from tfray.actors.links.silence import SILENT
from tfray.errors import DeadlineExceededError, UnavailableError, UnknownError


def ended(calls: Sequence[Any], timeout_s: float | None) -> list[Any]:
    """Those of the calls that have ended; the first of them is waited for, at most for so many seconds."""
    return list(ray.wait(list(calls), num_returns=1, timeout=timeout_s)[0])


def result(call: Any) -> Any:
    """What a call returned, waited for. Raises what Ray raises."""
    return ray.get(call)


def outcome(call: Any, device: str, timeout_s: float | None = None) -> Any:
    """What a call to the actor of a device returned, waited for.

    Raises:
        UnavailableError: The actor is dead, or cannot be reached.
        UnknownError: It cannot take what was sent to it.
        DeadlineExceededError: No answer came within `timeout_s` seconds.
    """
    try:
        return ray.get(call, timeout=timeout_s)
    except ray.exceptions.GetTimeoutError as error:
        raise DeadlineExceededError(
            f"{device} did not answer within {timeout_s:g} s: {SILENT}", device=device
        ) from error
    except ray.exceptions.ActorUnavailableError as error:
        raise UnavailableError(
            f"the actor of {device} cannot be reached at the moment: {str(error).splitlines()[0]}", device=device
        ) from error
    except ray.exceptions.RayActorError as error:
        raise UnavailableError(
            f"the actor of {device} died: {str(error).splitlines()[0]}; its state is lost", device=device
        ) from error
    except ray.exceptions.RayTaskError as error:
        # The actor is well: mostly it cannot import what a function needs.
        cause = str(error.cause).partition("\n")[0] or type(error.cause).__name__
        raise UnknownError(
            f"{device} cannot take what was sent to it: {cause}; every node needs the modules that functions use",
            device=device,
        ) from error
    except (ray.exceptions.ObjectLostError, ray.exceptions.RaySystemError) as error:
        raise UnavailableError(f"the call to {device} failed: {error}", device=device) from error


def wait_until_taken(call: Any, device: str, timeout_s: float | None) -> None:
    """Wait until the actor of a device has taken what a call brings it.

    Raises:
        UnavailableError: The actor died.
        DeadlineExceededError: It has not taken it within `timeout_s` seconds.
    """
    try:
        ray.get(call, timeout=timeout_s)
    except ray.exceptions.RayActorError as error:
        raise UnavailableError(f"{device} died while tensors were sent to it", device=device) from error
    except ray.exceptions.GetTimeoutError as error:
        raise DeadlineExceededError(f"the step timed out sending tensors to {device}") from error


def end_actor(actor: Any) -> None:
    """End an actor, also one that waits for room."""
    ray.kill(actor)
