"""Hosts on this machine: network namespaces on one bridge, each with a Ray node, and cables that can be cut.

The test's own process is on the bridge, with a node of its own. Namespaces need root; `why_not` says why they cannot be
had. Everything is named after this process, so that several runs do not meet.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.processes import PATIENCE_S

NOWHERE = "02:00:00:00:00:01"
"""The address of no network card: what is sent there is lost."""


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def why_not() -> str:
    """Why this machine has no hosts; an empty text if it has."""
    probe = f"tfray-{os.getpid()}-probe"
    try:
        _ip("netns", "add", probe)
        _ip("link", "add", "tfray-probe", "type", "veth", "peer", "name", "eth0", "netns", probe)
    except OSError as error:
        return f"network namespaces with cables cannot be made here: {error}"
    finally:
        with contextlib.suppress(OSError):
            _ip("netns", "del", probe)
    return ""


OWN_FOLDER = 'mount -t tmpfs tmpfs "$RAY_TMPDIR" && exec "$0" "$@"'
"""Runs a command with a folder of its own where Ray keeps the names of its sockets."""


RAY_START = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--object-store-memory={300 << 20}")


class Host:
    """One host.

    Args:
        network: The network.
        index: Its number on it.

    Attributes:
        name: The name of its Ray node as a resource: an actor that asks for a little of it runs there.
        address: Its address.
    """

    def __init__(self, network: Network, index: int) -> None:
        self._network = network
        self.name = f"host{index}"
        self.address = f"{network.prefix}.{index + 10}"
        self._space = f"{network.id}-{index}"
        self._cable = f"tf{os.getpid() % 100_000}v{index}"
        self._ray: subprocess.Popen[str] | None = None
        _ip("netns", "add", self._space)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self._space)
        _ip("link", "set", self._cable, "master", network.bridge, "up")
        _ip("-n", self._space, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _ip("-n", self._space, "link", "set", "eth0", "up")
        _ip("-n", self._space, "link", "set", "lo", "up")

    def start_ray(self) -> None:
        """Start a Ray node here, which joins that of the network. Its resources are the host's name and ``away``."""
        command = [*RAY_START, "--num-cpus=2", f'--resources={{"{self.name}": 1, "away": 1}}']
        command += ["--address", f"{self._network.address}:{self._network.port}", "--node-ip-address", self.address]
        self._ray = subprocess.Popen(
            ["ip", "netns", "exec", self._space, "unshare", "--mount", "sh", "-c", OWN_FOLDER, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def restart_ray_if_ended(self) -> None:
        """Start Ray anew if it has ended."""
        if self._ray is not None and self._ray.poll() is not None:
            self._kill_all()
            self.start_ray()

    def cut(self) -> None:
        """Cut the cable: nothing goes either way, and nobody is told."""
        _ip("link", "set", self._cable, "down")

    def mend(self) -> None:
        """Plug the cable in again."""
        _ip("link", "set", self._cable, "up")
        self.hear()

    @property
    def crossed_bytes(self) -> int:
        """All that has gone over its cable so far, both ways."""
        counters = Path("/sys/class/net", self._cable, "statistics")
        return sum(int((counters / f"{way}_bytes").read_text()) for way in ("rx", "tx"))

    def mute(self, address: str) -> None:
        """Lose what this host sends to an address. It still receives from there."""
        _ip("-n", self._space, "neigh", "replace", address, "lladdr", NOWHERE, "nud", "permanent", "dev", "eth0")

    def hear(self) -> None:
        """Send to everybody again."""
        _ip("-n", self._space, "neigh", "flush", "dev", "eth0", "nud", "permanent")

    def _kill_all(self) -> None:
        found = subprocess.run(["ip", "netns", "pids", self._space], capture_output=True, text=True, timeout=PATIENCE_S)
        for pid in found.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def close(self) -> None:
        """End everything here."""
        self._kill_all()
        if self._ray is not None:
            self._ray.wait(PATIENCE_S)
        _ip("netns", "del", self._space)


class Network:
    """A bridge, on which this process is, and the hosts on it.

    Attributes:
        prefix: The first three numbers of all addresses.
        address: This process's address.
        port: Where the Ray of the network is.
    """

    def __init__(self, port: int) -> None:
        self.id = f"tfray-{os.getpid()}"
        self.bridge = f"tf{os.getpid() % 100_000}"
        self.prefix = f"10.{77 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
        self.address = f"{self.prefix}.1"
        self.port = port
        self.hosts: list[Host] = []
        _ip("link", "add", self.bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")

    def start_ray(self, log: Path) -> subprocess.Popen[bytes]:
        """Start the head of Ray in this process's place on the network."""
        command = [*RAY_START, "--head", "--num-cpus=2", "--include-dashboard=false", '--resources={"home": 1}']
        command += [f"--node-ip-address={self.address}", f"--port={self.port}"]
        with log.open("wb") as out:
            return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    def add(self) -> Host:
        """Another host."""
        self.hosts.append(Host(self, len(self.hosts)))
        return self.hosts[-1]

    def close(self) -> None:
        for host in self.hosts:
            host.close()
        _ip("link", "del", self.bridge)


@contextlib.contextmanager
def network(port: int) -> Iterator[Network]:
    """A network without hosts."""
    made = Network(port)
    try:
        yield made
    finally:
        made.close()
