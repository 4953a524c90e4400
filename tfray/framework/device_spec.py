"""Names of devices, full and partial: ``/job:worker/replica:0/task:1/device:GPU:0``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Self

from tfray.framework.arguments import Count, checked

_PART: Final = (
    r"(?:job:(?P<job>[\w.\-]+)|replica:(?P<replica>\d+|\*)|task:(?P<task>\d+|\*)"
    r"|device:(?P<type>[A-Za-z]\w*|\*)(?::(?P<index>\d+|\*))?|(?P<old_type>[cCgG][pP][uU])(?::(?P<old_index>\d+|\*))?)?"
)


@checked
@dataclass(unsafe_hash=True)
class DeviceSpec:
    """A set of devices: each field that is None may be anything. As in TensorFlow 1, the fields may be set.

    Attributes:
        job: Named set of tasks, such as ``worker`` or ``ps``.
        replica: Kept for TensorFlow 1's names; always 0 in tfray's own devices.
        task: Index of the task in its job.
        device_type: ``CPU`` or ``GPU``; ``cpu`` and ``gpu`` become these.
        device_index: Index of the device in its task.
    """

    job: str | None = None
    replica: Count | None = None
    task: Count | None = None
    device_type: str | None = None
    device_index: Count | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        is_old = name == "device_type" and isinstance(value, str) and value.lower() in ("cpu", "gpu")
        super().__setattr__(name, value.upper() if is_old else value)

    @classmethod
    def from_string(cls, spec: str) -> Self:
        """Parse a full or partial device name; ``""`` names every device.

        Raises:
            ValueError: `spec` is not a device name.
        """
        fields: dict[str, Any] = {}
        for part in spec.split("/"):
            match = re.fullmatch(_PART, part)
            if match is None:
                key, _, value = part.partition(":")
                is_number = key in ("replica", "task")
                reason = f"invalid literal for int(): {value!r}" if is_number else f"Unknown attribute: {key!r}"
                raise ValueError(
                    f"{spec!r} is not a device name: expected parts such as /job:ps/task:1/device:CPU:0, found "
                    f"{part!r} ({reason})"
                )
            _take_part(match, spec, fields)
        return cls(**fields)

    def parse_from_string(self, spec: str) -> Self:
        """Take the fields of a device name, in place of those that are set. Returns this object.

        Raises:
            ValueError: `spec` is not a device name.
        """
        self.__dict__.update(self.from_string(spec).__dict__)
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Take the fields that `dev` sets."""
        self.__dict__.update(self.merge(dev).__dict__)

    def make_merged_spec(self, dev: DeviceSpec) -> Self:
        """A copy of this spec with the fields that `dev` sets."""
        return self.merge(dev)

    def replace(self, **fields: Any) -> Self:
        """A copy of this spec with other values for some fields."""
        return replace(self, **fields)

    def merge(self, inner: DeviceSpec) -> Self:
        """This spec with the fields that `inner` sets put over it, as nested device scopes do."""
        return replace(
            self,
            job=self.job if inner.job is None else inner.job,
            task=self.task if inner.task is None else inner.task,
            device_type=self.device_type if inner.device_type is None else inner.device_type,
            device_index=self.device_index if inner.device_index is None else inner.device_index,
            replica=self.replica if inner.replica is None else inner.replica,
        )

    def matches(self, device: DeviceSpec) -> bool:
        """Whether the full `device` is one of the devices that this spec names."""
        return (
            self.job in (None, device.job)
            and self.task in (None, device.task)
            and self.device_type in (None, device.device_type)
            and self.device_index in (None, device.device_index)
            and (self.replica is None or device.replica is None or self.replica == device.replica)
        )

    def intersect(self, other: DeviceSpec) -> DeviceSpec | None:
        """The devices that both specs name, or None when they contradict each other."""
        for field in ("job", "replica", "task", "device_type", "device_index"):
            mine, theirs = getattr(self, field), getattr(other, field)
            if mine is not None and theirs is not None and mine != theirs:
                return None
        return self.merge(other)

    def to_string(self) -> str:
        """The canonical name, ``""`` when nothing is set."""
        name = ""
        if self.job is not None:
            name += f"/job:{self.job}"
        if self.replica is not None:
            name += f"/replica:{self.replica}"
        if self.task is not None:
            name += f"/task:{self.task}"
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            name += f"/device:{self.device_type}:{index}"
        elif self.device_index is not None:
            name += f"/device:*:{self.device_index}"
        return name

    __str__ = to_string


def _take_part(match: re.Match[str], name: str, fields: dict[str, Any]) -> None:
    found = {field: text for field, text in match.groupdict().items() if text is not None}
    fields.update({field: _number(text) for field, text in found.items() if field in ("replica", "task")})
    fields.update({field: text for field, text in found.items() if field == "job"})
    kind, index = found.get("type", found.get("old_type")), found.get("index", found.get("old_index"))
    if kind is not None:
        if fields.get("device_type") is not None:
            raise ValueError(f"Cannot specify multiple device types: {name!r}")
        fields.update(device_type=None if kind == "*" else kind, device_index=_number(index))


def _number(text: str | None) -> int | None:
    return None if text in (None, "*") else int(text)


@lru_cache(4096)  # a name is read for each operation in its scope
def canonical_name(name: str) -> str:
    """The canonical form of a device name: ``/gpu:0`` becomes ``/device:GPU:0``."""
    return DeviceSpec.from_string(name).to_string()


@lru_cache(4096)
def merge_device(outer: str, inner: str) -> str:
    """The device string of a scope `inner` opened inside `outer`."""
    return DeviceSpec.from_string(outer).merge(DeviceSpec.from_string(inner)).to_string()


@lru_cache(4096)  # asked for each operation that has a choice
def device_type(device: str) -> str | None:
    """The type of a device, ``CPU`` or ``GPU``; None where its name leaves it open."""
    return DeviceSpec.from_string(device).device_type


def gpu_beside(cpu: str, index: int) -> str:
    """The name of a GPU of the same task as a CPU device."""
    return DeviceSpec.from_string(cpu).replace(device_type="GPU", device_index=index).to_string()


def short_name(device: str) -> str:
    """A device by its task, as people read it: ``worker/0``, or ``worker/0/GPU:1`` for what is not its first CPU."""
    spec = DeviceSpec.from_string(device)
    unit = f"{spec.device_type}:{spec.device_index}"
    return f"{spec.job}/{spec.task}" + ("" if unit == "CPU:0" else f"/{unit}")


class DeviceName(str):
    """The name of a device as tfray's messages give it, with what TensorFlow tells of devices."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """TensorFlow's name for it, with its replica: ``/job:localhost/replica:0/task:0/device:CPU:0``."""
        return DeviceSpec.from_string(self).replace(replica=0).to_string()

    @property
    def device_type(self) -> str:
        """``CPU`` or ``GPU``."""
        return DeviceSpec.from_string(self).device_type or ""

    @property
    def memory_limit_bytes(self) -> int:
        """What TensorFlow says of a CPU's memory, whatever the machine has."""
        return 256 << 20

    @property
    def incarnation(self) -> int:
        """A number of the device."""
        return 1
