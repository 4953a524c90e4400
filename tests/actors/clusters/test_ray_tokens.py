"""Joining a Ray that others have started: with its token or without, and never in silence."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from tests.support import ROOT
from tests.support.local_ray import NO_MODE, ray_head
from tests.support.processes import PATIENCE_S
from tfray.actors.clusters.gcs_probe import Answer, probe

TOKEN = "a" * 64


def answering(*frames):
    """The address of something that answers one connection with these bytes."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        with suppress(OSError), connection, server:  # whoever asks may have left
            connection.recv(1 << 14)
            for frame in frames:
                connection.sendall(frame)
            if frames:
                connection.recv(1 << 14)

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
REFUSAL = b"\x88\x40\x0bgrpc-status\x0216"


def headers(payload, length=None):
    return (length or len(payload)).to_bytes(3, "big") + bytes([1, 5, 0, 0, 0, 1]) + payload


@pytest.mark.parametrize(
    ("frames", "answer"),
    [
        ([], Answer.OTHER),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], Answer.OTHER),
        ([b"\x00"], Answer.OTHER),
        ([SETTINGS, headers(REFUSAL)], Answer.REFUSED),
        ([SETTINGS, headers(b"\x88\x40\x0bgrpc-status\x010")], Answer.CLUSTER),
        ([SETTINGS, headers(b"x", length=1 << 20)], Answer.CLUSTER),
        ([SETTINGS], Answer.CLUSTER),
    ],
)
@pytest.mark.parametrize("token", [None, "t" * 5000])
def test_what_answers_is_told_in_a_moment(monkeypatch, frames, answer, token):
    for limit_s in (0.3, 3.0, 30.0):  # on a busy machine the answer may come late
        monkeypatch.setattr("tfray.actors.clusters.gcs_probe.CONNECT_TIMEOUT_S", limit_s)
        found = probe(answering(*frames), token)
        if found is answer:
            break
    assert found is answer


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """The address of a Ray whose head found a token in its home, and so asks for it, if this Ray does such."""
    home = tmp_path_factory.mktemp("home")
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text(TOKEN)

    def ready(address):
        return probe(address) is not Answer.REFUSED or devices(address, HOME=str(home)).returncode == 0

    with ray_head({"HOME": str(home)}, token=TOKEN, ready=ready) as address:
        if probe(address) is not Answer.REFUSED:
            pytest.skip("this Ray asks for no token")
        yield address, home


def devices(address, **environment):
    root = str(ROOT)
    return subprocess.run(
        [sys.executable, "-m", "tfray.cli", "devices", "--address", address],
        env=NO_MODE | {"PYTHONPATH": root} | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def seconds_of(function):
    started = time.monotonic()
    function()
    return time.monotonic() - started


@pytest.mark.slow
@pytest.mark.fault(
    "Machines and networks",
    "The Ray cluster asks for a token.",
    happens="The token in its usual place is shown. Without one, a single line says what to set.",
    promise="A refusal ends the attempt at once, and a cluster that is joined is always named.",
)
@pytest.mark.ray
@pytest.mark.parametrize("mode", [{}, pytest.param({"RAY_AUTH_MODE": "token"})])
@pytest.mark.parametrize("source", ["home", pytest.param("RAY_AUTH_TOKEN"), "RAY_AUTH_TOKEN_PATH"])
def test_the_token_is_shown_wherever_it_lies(head, tmp_path, mode, source):
    address, home = head
    found = {
        "home": {"HOME": str(home)},
        "RAY_AUTH_TOKEN": {"HOME": str(tmp_path), "RAY_AUTH_TOKEN": TOKEN},
        "RAY_AUTH_TOKEN_PATH": {"HOME": str(tmp_path), "RAY_AUTH_TOKEN_PATH": str(home / ".ray" / "auth_token")},
    }
    result = devices(address, **mode, **found[source])
    assert result.returncode == 0, result.stderr
    told = result.stderr.splitlines()
    assert len(told) == 1 and told[0].startswith("tfray: joined the Ray cluster at ")
    assert told[0].endswith(f":{address.rpartition(':')[2]}: 1 node, 1 CPUs")


@pytest.mark.slow
@pytest.mark.fault(
    "Machines and networks",
    "The Ray cluster asks for a token.",
    happens="The token in its usual place is shown. Without one, a single line says what to set.",
    promise="A refusal ends the attempt at once, and a cluster that is joined is always named.",
)
@pytest.mark.ray
@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "asks for a token, and there is none in ~/.ray/auth_token: copy"),
        pytest.param(
            {"RAY_AUTH_MODE": "token"},
            "asks for a token, and there is none in ~/.ray/auth_token: copy",
            marks=pytest.mark.slow,
        ),
        ({"RAY_AUTH_TOKEN": "b" * 64}, "refuses the one in RAY_AUTH_TOKEN"),
        ({"RAY_AUTH_TOKEN_PATH": "/nowhere/at/all"}, "there is none in /nowhere/at/all"),
        ({"RAY_AUTH_TOKEN": TOKEN, "RAY_AUTH_MODE": "disabled"}, "RAY_AUTH_MODE=disabled lets this process show none"),
    ],
)
def test_a_refusal_ends_it_at_once_and_says_what_to_set(head, tmp_path, environment, told):
    def refused():
        result = devices(head[0], HOME=str(tmp_path), **environment)
        assert result.returncode == 2
        assert told in result.stderr and result.stderr.count("\n") == 1, result.stderr

    took_s = seconds_of(refused)
    if took_s > 15:  # Ray itself tries for 21 seconds; but the machine may be busy, so that joining takes long as well
        joined_s = [seconds_of(lambda: devices(head[0], HOME=str(head[1])).check_returncode()) for _ in range(3)]
        assert min(took_s, *(seconds_of(refused) for _ in range(2))) < 2 * min(joined_s)
