"""One device, or one parameter shard, as a Ray actor. What it does is in `device_host.py`.

Its methods are of three kinds:

- `run_step` and `attach_input` call the user's code: each call has a thread of its own.
- Messages (`deliver`, `tell`) are short: one thread takes them, in the order in which they came.
- The rest of set-up has one thread as well, and keeps its order.

All methods are coroutines, for which Ray keeps one thread in all. For plain methods Ray would start at once as many
threads as calls may run at a time. Steps, tensors and answers mostly travel over links (`peer_link.py`), for speed.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

import ray

from tfray.actors.devices.combining import OwnReceipt
from tfray.actors.devices.device_host import DeviceHost
from tfray.actors.links.messages import OpenInput, PlanId, Presence, StepKey, StepNotice, StepRequest
from tfray.actors.links.packing import unpack
from tfray.actors.links.peer_link import LinkServer
from tfray.actors.links.peers import Outcome, PeerHandle
from tfray.framework.device_spec import short_name
from tfray.framework.op_def import OpDef
from tfray.ops import families
from tfray.ops.kernels.random_streams import restore_states, states_of

CONCURRENT_CALLS: Final = 100_000
"""Calls that Ray lets run at once: more than there ever are. A waiting call takes no thread of Ray. With a limit, the
call for which all others wait might not begin."""

_Result = TypeVar("_Result")


def _own_gpus() -> list[int]:
    """Where the GPUs that Ray gave this actor stand among those that the process sees.

    Ray shows an actor its own GPUs alone, unless it is told not to (`RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES`).
    """
    given = [str(gpu) for gpu in ray.get_gpu_ids()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [visible.split(",").index(gpu) if visible else int(gpu) for gpu in given]


class DeviceActor:
    """The actor's class; `tfray.actors.clusters.cluster` makes Ray actors of it.

    Methods that may fail return outcomes, ``("ok", value)`` or ``("error", OpError)``: Ray would wrap a raised error in
    one of its own.

    Args:
        device_name: Full name of the device that it hosts.
        key: The key that peers must hold.
        op_modules: Modules to import because they register the user's own operations.
        folder: The driver's working directory; None where it has none.
        store_bytes: Bytes of the node's object store that it may hold for what it sends; None for any number.
    """

    def __init__(
        self,
        device_name: str,
        key: bytes,
        op_modules: Sequence[str] = (),
        folder: str | None = None,
        store_bytes: int | None = None,
    ) -> None:
        self._name = short_name(device_name)  # first: Ray asks for it when what follows fails
        if folder is not None:
            # Relative paths in graphs mean the driver's folder on every machine that has it; a Ray that ran already has
            # another. On a machine without it they mean what Ray has shipped, or else the folder of Ray's process.
            with suppress(OSError):
                os.chdir(folder)
        # Steps wait for objects on threads of their own, never where coroutines run.
        os.environ.setdefault("RAY_WARN_BLOCKING_GET_INSIDE_ASYNC", "0")
        for module in op_modules:
            importlib.import_module(module)
        self._op_modules = tuple(op_modules)
        node = ray.get_runtime_context().get_node_id()
        self._host = host = DeviceHost(device_name, node, _own_gpus(), store_bytes)
        ip = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._links = LinkServer(key, node, ip, host.take_message, host.link_closed, host.incoming.take_stream)
        self._set_up = ThreadPoolExecutor(1, "tfray-set-up")
        self._messages = ThreadPoolExecutor(1, "tfray-messages")

    def __repr__(self) -> str:
        """What Ray writes before each line that the actor prints, and shows in its dashboard."""
        return self._name

    async def _on_thread(self, call: Callable[[], Any]) -> Outcome:
        """Run a call that may wait for long, or for ever, on a thread of its own."""
        ended: Future[Outcome] = Future()
        self._host.run_on_thread(call, ended.set_result)
        return await asyncio.wrap_future(ended)

    async def _in_turn(self, call: Callable[[], _Result]) -> _Result:
        """Run a call of set-up, which may take time, after all that came before."""
        return await asyncio.wrap_future(self._set_up.submit(call))

    async def _at_once(self, message: Callable[[], _Result]) -> _Result:
        """Take a message, after those that came before. Set-up does not delay it: a step may be waiting for it."""
        return await asyncio.wrap_future(self._messages.submit(message))

    # -- set-up ----------------------------------------------------------------------------------

    async def ready(self) -> Presence:
        """Where the actor runs and listens; returns once it has started."""
        return Presence(self._links.address.node, os.getpid(), self._links.address)

    async def connect(self, peers: Mapping[str, PeerHandle]) -> None:
        """Learn how to reach other devices, by name."""
        self._host.peers.learn(peers)

    async def register(
        self,
        plan_id: PlanId,
        partition: Any,
        functions: Mapping[str, Callable[..., Any]],
        definitions: Sequence[OpDef] = (),
    ) -> Outcome:
        """Compile a partition under `plan_id`."""
        return await self._in_turn(
            lambda: self._host.outcome(lambda: self._host.register(plan_id, partition, functions, definitions))
        )

    async def deregister(self, plan_ids: Sequence[PlanId]) -> None:
        """Forget plans."""
        await self._in_turn(lambda: self._host.deregister(plan_ids))

    async def attach_input(self, plan_id: PlanId, open_input: OpenInput) -> Outcome:
        """Open an input pipeline: an iterator that gives the fed values of one step of a plan at a time."""
        return await self._on_thread(lambda: self._host.inputs.attach(plan_id, open_input))

    async def random_states(self, session: str) -> Outcome:
        """Where the random streams of a session are; call it between steps."""
        return await self._in_turn(
            lambda: self._host.outcome(lambda: states_of(self._host.device_of(session).session_state))
        )

    async def restore_random_states(self, session: str, states: Mapping[str, Any]) -> Outcome:
        """Put the random streams of a session where they were; those that are not named begin anew."""
        return await self._in_turn(
            lambda: self._host.outcome(lambda: restore_states(self._host.device_of(session).session_state, states))
        )

    async def forget_variables(self, names: Sequence[str]) -> None:
        """Drop variables with their values: they live on another device now."""
        for name in names:
            self._host.device.resources.remove(("variable", name))

    # -- steps -----------------------------------------------------------------------------------

    async def run_step(
        self, plan_id: PlanId, request: StepRequest, inline: Sequence[Any] = (), *objects: Any
    ) -> Outcome:
        """Run a plan as this device's part of a step, on fed values that come packed."""
        return await self._on_thread(lambda: self._host.run_step(plan_id, request, unpack(inline, objects)))

    async def collect(self, token: str) -> Outcome:
        """What a step fetched that came over a link, and was too large to go back."""
        return self._host.collect(token)

    # -- messages --------------------------------------------------------------------------------

    async def deliver(
        self,
        step: StepKey,
        replicas: tuple[int, ...],
        keys: Sequence[str],
        call: bytes | None,
        inline: Sequence[Any],
        *objects: Any,
    ) -> bool:
        """Take tensors for a step, packed, by the keys of their edges. Returns whether the step still wanted them.

        The step begins with `call`, if there is one and it has not begun.
        """

        def take() -> bool:
            if call is not None:
                self._host.wake(step, call)
            items = list(zip(keys, unpack(inline, objects), strict=True))
            if replicas and step.serves:
                self._host.combinations.add(step, replicas[0], items, receipt.told)
                return True
            return self._host.deliver(step, replicas, items)

        receipt = OwnReceipt()
        wanted = await self._at_once(take)
        if replicas and step.serves:
            status, error = await self._on_thread(lambda: receipt(None))
            if status == "error":
                raise error
        return wanted

    async def tell(self, notice: StepNotice) -> None:
        """Do what a notice about a step says."""
        await self._at_once(lambda: self._host.take_notice(notice))

    async def abort_all(self, driver: str, reason: str) -> None:
        """End every step of a driver, and drop what still arrives for them."""
        await self._at_once(lambda: self._host.leave(driver, reason))

    async def reset(self, containers: Collection[str] | None) -> None:
        """Drop the resources of containers, of all when None, and end the sessions that there are."""
        await self._in_turn(lambda: self._host.reset(containers))

    async def lose(self, driver: str, device: str) -> None:
        """Nothing more comes from a device to the steps of a driver."""
        await self._at_once(lambda: self._host.lose(driver, device))

    async def settle(self, driver: str, reason: str, patience_s: float) -> Outcome:
        """End the steps of a driver that lack contributions, once the others are over; see `DeviceHost.settle`."""
        return await self._on_thread(lambda: self._host.settle(driver, reason, patience_s))

    async def is_half_done(self, driver: str) -> Outcome:
        """Whether a step of a driver has failed here that may have made a part of its updates."""
        return await self._on_thread(lambda: self._host.is_half_done(driver))

    async def clock(self) -> int:
        """The time in nanoseconds, by the clock that this actor's traces use."""
        return time.perf_counter_ns()

    async def live(self) -> None:
        """Never return. Ray ends the call when the actor or its node has died: so whoever waits for it learns that."""
        await asyncio.Event().wait()

    async def status(self) -> dict[str, Any]:
        """Counts of what this actor holds, for monitoring and tests."""
        host = self._host
        return {
            "device": host.device.name,
            "plans": len(host.plans),
            "steps": len(host.steps),
            "streamed_bytes": sum(peer.sent_bytes for peer in list(host.peers.values())),
            "sessions": len(host.sessions),
            "resources": len(list(host.device.resources)),
            "op_modules": [*families.MODULES, *self._op_modules],
        }
