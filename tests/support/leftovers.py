"""What a program holds, of this process, of Ray and of the machine: to see that it gives everything back."""

from __future__ import annotations

import gc
import os
import socket
import tempfile
import threading

import pytest

from tests.support.processes import descendants, wait_for

ACTOR = b"ray::DeviceActor"
"""What processes of device actors call themselves."""

GRPC_THREADS = ("event_engine", "nexting_thread", "grpc", "client.poll", "default-exec", "resolver-exec", "timer_man")


def actor_processes(parent=None):
    """Processes of device actors below a process: this one, which has started Ray, if none is given."""
    return {pid for pid in descendants(parent or os.getpid()) if _title(pid).startswith(ACTOR)}


def _title(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().strip(b"\0").replace(b"\0", b" ")
    except OSError:
        return b""


def processes():
    """Processes that this one has started, without those that Ray holds ready for whoever comes next."""
    ready = (b"ray::IDLE", b"ray::SpillWorker", b"ray::RestoreWorker")
    titles = map(_title, descendants(os.getpid()))
    return [title for title in titles if title and not title.startswith(ready) and b"default_worker.py" not in title]


def stored_bytes(ray):
    """Bytes of objects in the stores of all nodes that live."""
    return sum(each.store_stats.object_store_bytes_used for each in _stats_of_nodes(ray))


def _stats_of_nodes(ray, with_references=False):
    from ray._private.internal_api import node_stats

    nodes = [node for node in ray.nodes() if node["Alive"]]
    return [node_stats(node["NodeManagerAddress"], node["NodeManagerPort"], with_references) for node in nodes]


def wait_for_store(ray, at_most):
    """Wait until the stores hold no more than so many bytes. If they go on to, say who refers to what is there."""
    try:
        wait_for(lambda: stored_bytes(ray) <= at_most)
    except AssertionError:
        held = stored_bytes(ray)
        gc.collect()
        if stored_bytes(ray) <= at_most:
            raise AssertionError("objects of the store were held by a cycle of references") from None
        referred = [
            f"process {worker.pid}: object {each.object_id.hex()[:16]} of {each.object_size} bytes, "
            f"{each.local_ref_count} references, pinned: {each.pinned_in_memory}"
            for node in _stats_of_nodes(ray, with_references=True)
            for worker in node.core_workers_stats
            for each in worker.object_refs
        ]
        found = f"the store holds {held} bytes, {at_most} were expected; this process is {os.getpid()}"
        raise AssertionError("\n".join([found, *referred])) from None


def threads():
    """Python threads of this process."""
    return sorted(thread.name for thread in threading.enumerate())


def native_threads():
    """Threads of this process by their names, without those of gRPC, which has as many as are busy."""
    found = []
    for number in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{number}/comm") as comm:
                found.append(comm.read().strip())
        except OSError:
            continue
    return sorted(name for name in found if not name.startswith(GRPC_THREADS))


def descriptors():
    """Descriptors of this process by what they are: files by their paths, sockets and the like by kind and number."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue  # the one that listed them
    return found


def instances(kind):
    """All objects of a class that Python's search for garbage knows.

    Weak proxies are passed over: asked for their class, one whose object has gone raises `ReferenceError`.
    """
    return [each for each in gc.get_objects() if issubclass(type(each), kind)]


def open_sockets():
    """Sockets of this process that Python knows: Ray's own, which are many and come and go, are not among them."""
    return [each for each in instances(socket.socket) if each.fileno() >= 0]


def links():
    """Descriptors of this process that are sockets of tfray's links within the machine."""
    with open("/proc/net/unix") as table:
        ours = {line.split()[6] for line in table if "@tfray-" in line}
    return [name for name in descriptors() if name.startswith("socket:[") and name[8:-1] in ours]


def temporary_files():
    """Names in the folder for temporary files. `own_temporary_folder` makes that one which nobody else uses."""
    return set(os.listdir(tempfile.gettempdir()))


@pytest.fixture
def own_temporary_folder(tmp_path, monkeypatch):
    """A folder for the temporary files of this process and of those that it starts, apart from Ray's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("RAY_TMPDIR", tempfile.gettempdir())
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


class Holdings:
    """What is held when it is made, so that `assert_returned` can tell what is left of what came since.

    Ray itself keeps a few sockets to its own processes for a while, and threads of its library that serve them.
    """

    SOCKETS_OF_RAY = 12
    THREADS_OF_RAY = 4

    def __init__(self, ray):
        self._ray = ray
        self._before = self._now()
        self._opened = descriptors()
        self._temporary = temporary_files()

    def _now(self):
        found = descriptors()
        sockets = sum(name.startswith("socket:") for name in found)
        return {
            "stored bytes": stored_bytes(self._ray),
            "actors": len(actor_processes()),
            "processes": len(processes()),
            "threads": len(threads()),
            "native threads": len(native_threads()) - self.THREADS_OF_RAY,
            "sockets": sockets - self.SOCKETS_OF_RAY,
            "other descriptors": len(found) - sockets,
            "links": len(links()),
        }

    def excess(self):
        """What there is more of than before."""
        before = self._before | {
            "native threads": self._before["native threads"] + self.THREADS_OF_RAY,
            "sockets": self._before["sockets"] + self.SOCKETS_OF_RAY,
        }
        return {kind: count - before[kind] for kind, count in self._now().items() if count > before[kind]}

    def opened(self):
        """Descriptors other than sockets that have come since."""
        return [name for name in descriptors() if not name.startswith("socket:") and name not in self._opened]

    def assert_returned(self, timeout_s=30.0):
        """Wait until there is no more of anything than before."""
        try:
            wait_for(lambda: not self.excess(), timeout_s)
        except AssertionError:
            rest = f"threads {threads()}, natively {native_threads()}; processes {processes()}; files {self.opened()}"
            raise AssertionError(f"what is left: {self.excess()}; {rest}") from None
        assert not temporary_files() - self._temporary
