"""Threads that wait for one another in tests, and how to see that they do."""

from __future__ import annotations

import threading

import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S, wait_for
from tfray.errors import DeadlineExceededError, OpError


class Task:
    """A function on a thread of its own; `result` returns or raises what it did."""

    def __init__(self, function, *arguments):
        self._outcome = None

        def run():
            try:
                self._outcome = ("value", function(*arguments))
            except BaseException as error:  # noqa: BLE001 (for `result` to raise)
                self._outcome = ("error", error)

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    @property
    def done(self):
        return not self.thread.is_alive()

    def result(self, timeout_s=PATIENCE_S):
        self.thread.join(timeout_s)
        assert self._outcome is not None, "the thread still waits"
        kind, value = self._outcome
        if kind == "error":
            raise value
        return value


def raised_at_the_limit(attempt, limits, reached):
    """What `attempt` raises that is given a limit of its time: one that is long enough for it to get where it waits.

    A short one comes first. On a busy machine it may be over before anything has begun; then a longer one is tried.

    Args:
        attempt: Called with a limit; it must raise.
        limits: In growing order; the last one is generous.
        reached: Whether an error is of an attempt that has got where it waits.
    """
    for limit in limits:
        with pytest.raises(OpError) as caught:
            attempt(limit)
        if reached(caught.value):
            break
    return caught.value


def timed_out(session, fetch, feeds=None, at="", limits_ms=(50, 500, 5_000, 50_000)):
    """The error of a step that waits for ever at the operation of that name, and has a timeout."""
    error = raised_at_the_limit(
        lambda limit_ms: session.run(fetch, feeds, tf.RunOptions(timeout_in_ms=limit_ms)),
        limits_ms,
        lambda error: at in str(error),
    )
    assert isinstance(error, DeadlineExceededError) and at in str(error), error
    return error


def resource(session, name):
    """A resource of a local session by its shared name."""
    for device in session._runner.devices_by_name().values():
        for home in (device.resources, device.session_state):
            for key in home:
                if isinstance(key, tuple) and key[0] == "shared" and key[2] == name:
                    return home.find(key)
    raise KeyError(name)


def waiting(session, name):
    """Number of operations that wait at a resource, by line."""
    return [len(line) for line in resource(session, name)._lines]


def until_waiting(session, name, line, count=1):
    """Return once `count` operations wait in that line of a resource."""

    def there():
        try:
            return waiting(session, name)[line] >= count
        except KeyError:
            return False

    wait_for(there)
