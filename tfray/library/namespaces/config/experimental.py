"""``tf.config.experimental``: the devices of this process, and which of them sessions take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tfray.options import default_config
from tfray.runtime.device import cpu_device_count, gpu_count, local_device_names

__all__ = [
    "VirtualDeviceConfiguration", "get_device_policy", "get_memory_growth", "get_synchronous_execution",
    "get_virtual_device_configuration", "get_visible_devices", "list_logical_devices", "list_physical_devices",
    "set_device_policy", "set_memory_growth", "set_synchronous_execution", "set_virtual_device_configuration",
    "set_visible_devices",
]  # fmt: skip

_POLICIES: Final = ("explicit", "silent", "silent_for_int32", "warn")


class PhysicalDevice(NamedTuple):
    """A device that this machine has.

    Attributes:
        name: Such as ``/physical_device:GPU:0``.
        device_type: ``CPU`` or ``GPU``.
    """

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that sessions of this process have.

    Attributes:
        name: The full name, such as ``/job:localhost/task:0/device:GPU:0``.
        device_type: ``CPU`` or ``GPU``.
    """

    name: str
    device_type: str


class VirtualDeviceConfiguration(NamedTuple):
    """One of several devices that stand for one.

    Attributes:
        memory_limit: Megabytes of the memory of a GPU; None for a CPU.
    """

    memory_limit: int | None = None


class _State:
    """What programs set that is no option of a session."""

    def __init__(self) -> None:
        self.growth: dict[PhysicalDevice, bool] = {}
        self.virtual: dict[PhysicalDevice, list[VirtualDeviceConfiguration]] = {}
        self.policy = "silent"
        self.is_synchronous = True


_state: Final = _State()


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The CPU, and the GPUs that the process sees.

    Args:
        device_type: ``CPU`` or ``GPU``; all devices when None.
    """
    devices = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    devices += [PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(gpu_count())]
    return [device for device in devices if device_type in (None, device.device_type)]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices of sessions that are given no options.

    Args:
        device_type: ``CPU`` or ``GPU``; all devices when None.
    """
    counts = default_config().device_count
    names = local_device_names(counts.get("CPU", cpu_device_count()), counts.get("GPU"))
    devices = [LogicalDevice(name, name.split(":")[-2]) for name in names]
    return [device for device in devices if device_type in (None, device.device_type)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that sessions take.

    Args:
        device_type: ``CPU`` or ``GPU``; all devices when None.
    """
    gpus = default_config().device_count.get("GPU")
    devices = list_physical_devices("CPU") + list_physical_devices("GPU")[:gpus]
    return [device for device in devices if device_type in (None, device.device_type)]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Say which GPUs sessions take. They always take the CPU.

    Args:
        devices: Of `list_physical_devices`: one, or a list. The GPUs among them are the first ones of the machine.
        device_type: ``CPU`` or ``GPU``, to leave devices of the other type as they are.

    Raises:
        ValueError: There is no such device, it is of another type, or it is a GPU, and one before it is left out:
            ``CUDA_VISIBLE_DEVICES`` chooses any.
    """
    given = devices if isinstance(devices, list) else [devices]
    for device in given:
        _check_known(device)
        if device_type not in (None, device.device_type):
            raise ValueError(f"Unrecognized device: {device!r}")
    if device_type == "CPU":
        return
    gpus = [device for device in given if device.device_type == "GPU"]
    if sorted(gpus) != list_physical_devices("GPU")[: len(gpus)]:
        raise ValueError(f"{gpus} are not the first GPUs: set CUDA_VISIBLE_DEVICES before the program begins")
    default_config().device_count["GPU"] = len(gpus)


def get_memory_growth(device: PhysicalDevice) -> bool | None:
    """What `set_memory_growth` was given for a GPU; None before.

    Raises:
        KeyError: It is the CPU.
        ValueError: There is no such device.
    """
    _check_known(device)
    if device.device_type != "GPU":
        raise KeyError(device)
    return _state.growth.get(device)


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Say whether memory of a GPU is taken as it is needed; here it always is.

    Args:
        device: Of `list_physical_devices`.
        enable: Whether.

    Raises:
        ValueError: It is the CPU, or has virtual devices, or there is no such device.
    """
    _check_known(device)
    if device in _state.virtual:
        raise ValueError("Cannot set memory growth on device when virtual devices configured")
    if device.device_type != "GPU":
        raise ValueError("Cannot set memory growth on non-GPU devices")
    _state.growth[device] = enable
    default_config().gpu_options.allow_growth = enable


def get_virtual_device_configuration(device: PhysicalDevice) -> list[VirtualDeviceConfiguration] | None:
    """What `set_virtual_device_configuration` was given for a device; None before.

    Raises:
        ValueError: There is no such device.
    """
    _check_known(device)
    return _state.virtual.get(device)


def set_virtual_device_configuration(
    device: PhysicalDevice, virtual_devices: Sequence[VirtualDeviceConfiguration]
) -> None:
    """Let the CPU be several devices, as ``tf.ConfigProto(device_count={"CPU": n})`` does.

    Args:
        device: Of `list_physical_devices`.
        virtual_devices: One for each of the devices. Of a GPU there is one, whose ``memory_limit`` changes nothing:
            ``per_process_gpu_memory_fraction`` of `tf.GPUOptions` limits memory.

    Raises:
        ValueError: One for the CPU has a limit, or one for a GPU has none; or a GPU is to be several devices; or there
            is no such device.
    """
    _check_known(device)
    is_cpu = device.device_type == "CPU"
    if is_cpu and any(each.memory_limit is not None for each in virtual_devices):
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    if not is_cpu and any(each.memory_limit is None for each in virtual_devices):
        raise ValueError("Setting memory limit is required for GPU virtual devices")
    if not is_cpu and len(virtual_devices) != 1:
        raise ValueError(f"{device} cannot be {len(virtual_devices)} devices: a GPU is one device in tfray")
    _state.virtual[device] = list(virtual_devices)
    if is_cpu:
        default_config().device_count["CPU"] = len(virtual_devices)


def get_device_policy() -> str:
    """What `set_device_policy` was given."""
    return _state.policy


def set_device_policy(device_policy: str | None) -> None:
    """Say what eager execution does with tensors of another device; sessions copy them.

    Args:
        device_policy: ``explicit``, ``warn``, ``silent`` or ``silent_for_int32``; ``silent`` when None.

    Raises:
        ValueError: It is something else.
    """
    if device_policy is not None and device_policy not in _POLICIES:
        raise ValueError(f"Not a valid device policy: {device_policy!r}; there are {', '.join(_POLICIES)}")
    _state.policy = device_policy or "silent"


def get_synchronous_execution() -> bool:
    """What `set_synchronous_execution` was given."""
    return _state.is_synchronous


def set_synchronous_execution(enable: bool) -> None:
    """Say whether eager execution waits for each operation; a session waits for each step.

    Args:
        enable: Whether.
    """
    _state.is_synchronous = enable


def _check_known(device: Any) -> None:
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")
