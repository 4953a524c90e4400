"""Links between the nodes of a Ray on this machine that are as slow as a network: TCP itself paces what is sent."""

from __future__ import annotations

import os
import socket

RATE = "TFRAY_TESTS_BYTES_PER_S"
"""Environment variable of Ray's processes: bytes that one process may send to another in a second."""

_SO_MAX_PACING_RATE = 47
"""Linux's option of sockets; Python has no name for it."""


def pace():
    """Let this process, one of Ray's workers, send no faster than that to processes of other nodes."""
    from tfray.actors.links import peer_link, tensor_streams

    rate, prepare = int(os.environ[RATE]), peer_link._prepare_tcp

    def paced(stream):
        prepare(stream)
        # Links and each of the streams have an equal part: nothing of a test goes by both.
        stream.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, rate // tensor_streams.STREAMS)

    peer_link._prepare_tcp = paced


def slow_runtime(bytes_per_s):
    """What `ray.init` takes as ``runtime_env`` for processes whose links are that slow."""
    return {"worker_process_setup_hook": pace, "env_vars": {RATE: str(bytes_per_s)}}
