"""Threads that wait for one another in tests, and how to see that they do."""

from __future__ import annotations

import threading

from processes import wait_for


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

    def result(self, timeout_s=30.0):
        self.thread.join(timeout_s)
        assert self._outcome is not None, "the thread still waits"
        kind, value = self._outcome
        if kind == "error":
            raise value
        return value


def resource(session, name):
    """A resource of a local session by its shared name."""
    for device in session._runner.devices_by_name().values():
        for key in device.resources:
            if isinstance(key, tuple) and key[0] == "shared" and key[2] == name:
                return device.resources.find(key)
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
