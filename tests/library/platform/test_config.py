"""`tf.config`: options of sessions that are given none. Expected values are those of TensorFlow 1.15."""

from __future__ import annotations

import pytest

import tfray as tf
from tfray import options
from tfray.library.namespaces.config import experimental as devices
from tfray.runtime import device as runtime_device

config = tf.config
CPU = ("/physical_device:CPU:0", "CPU")


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    options.default_config.cache_clear()
    monkeypatch.setattr(options, "_warned", set())
    monkeypatch.setattr(devices, "_state", devices._State())
    yield
    options.default_config.cache_clear()


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(runtime_device, "gpu_count", lambda: 2)
    monkeypatch.setattr(devices, "gpu_count", lambda: 2)
    return config.experimental.list_physical_devices("GPU")


@pytest.mark.parametrize(
    ("get", "set_", "before", "given", "after"),
    [
        (config.get_soft_device_placement, config.set_soft_device_placement, False, True, True),
        (config.optimizer.get_jit, config.optimizer.set_jit, False, True, True),
        (
            config.threading.get_inter_op_parallelism_threads,
            config.threading.set_inter_op_parallelism_threads,
            0,
            3,
            3,
        ),
        (
            config.threading.get_intra_op_parallelism_threads,
            config.threading.set_intra_op_parallelism_threads,
            0,
            2,
            2,
        ),
        (
            config.optimizer.get_experimental_options,
            config.optimizer.set_experimental_options,
            {"disable_model_pruning": False, "disable_meta_optimizer": False},
            {"constant_folding": False, "min_graph_nodes": 9, "nonsense": True},
            {
                "constant_folding": False,
                "disable_model_pruning": False,
                "disable_meta_optimizer": False,
                "min_graph_nodes": 9,
            },
        ),
        (config.experimental.get_device_policy, config.experimental.set_device_policy, "silent", "warn", "warn"),
        (config.experimental.get_device_policy, config.experimental.set_device_policy, "silent", None, "silent"),
        (
            config.experimental.get_synchronous_execution,
            config.experimental.set_synchronous_execution,
            True,
            False,
            False,
        ),
    ],
)
def test_what_was_set_can_be_asked_for(get, set_, before, given, after):
    assert get() == before
    set_(given)
    assert get() == after


def test_sessions_without_options_take_them():
    config.set_soft_device_placement(True)
    config.optimizer.set_jit(True)
    with pytest.warns(UserWarning, match=r"OptimizerOptions\.global_jit_level is accepted"), tf.Session() as session:
        with tf.device("/gpu:7"):
            x = tf.constant(2)
        assert session.run(x + 1) == 3
    with tf.Session(config=tf.ConfigProto()) as session, pytest.raises(tf.errors.InvalidArgumentError, match="GPU:7"):
        session.run(x)


def test_the_cpu_may_be_several_devices():
    experimental = config.experimental
    (cpu,) = experimental.list_physical_devices("CPU")
    assert cpu == CPU and experimental.get_virtual_device_configuration(cpu) is None
    two = [experimental.VirtualDeviceConfiguration()] * 2
    experimental.set_virtual_device_configuration(cpu, two)
    assert experimental.get_virtual_device_configuration(cpu) == two
    logical = experimental.list_logical_devices("CPU")
    assert [device.device_type for device in logical] == ["CPU", "CPU"]
    assert [device.name.rpartition("/")[2] for device in logical] == ["device:CPU:0", "device:CPU:1"]
    with tf.Session() as session:
        named = [str(name) for name in session.list_devices() if "CPU" in str(name)]
        assert named == [name for name in config.experimental_list_devices() if "CPU" in name]
        with tf.device("/cpu:1"):
            assert session.run(tf.constant(1)) == 1


def test_gpus_that_are_there(two_gpus):
    experimental = config.experimental
    assert two_gpus == [("/physical_device:GPU:0", "GPU"), ("/physical_device:GPU:1", "GPU")]
    assert experimental.get_visible_devices() == [CPU, *two_gpus]
    assert experimental.get_memory_growth(two_gpus[0]) is None
    experimental.set_memory_growth(two_gpus[0], True)
    assert experimental.get_memory_growth(two_gpus[0]) is options.default_config().gpu_options.allow_growth is True
    experimental.set_virtual_device_configuration(two_gpus[1], [experimental.VirtualDeviceConfiguration(1024)])
    assert experimental.get_virtual_device_configuration(two_gpus[1])[0].memory_limit == 1024


@pytest.mark.parametrize(("chosen", "kind", "left"), [([0], "GPU", 1), ([], "GPU", 0), ([0, 1], None, 2)])
def test_gpus_that_sessions_take(two_gpus, chosen, kind, left):
    config.experimental.set_visible_devices([two_gpus[number] for number in chosen], kind)
    assert config.experimental.get_visible_devices("GPU") == two_gpus[:left]
    assert len(config.experimental.list_logical_devices("GPU")) == left
    config.experimental.set_visible_devices(config.experimental.list_physical_devices("CPU"), "CPU")
    assert config.experimental.get_visible_devices() == [CPU, *two_gpus[:left]]


def limited(megabytes, count=1):
    return [config.experimental.VirtualDeviceConfiguration(megabytes)] * count


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda e, cpu, gpus: e.set_visible_devices(3), ValueError, "Unrecognized device: 3"),
        (lambda e, cpu, gpus: e.set_visible_devices(cpu, "GPU"), ValueError, "Unrecognized device"),
        (lambda e, cpu, gpus: e.set_visible_devices(gpus[1], "GPU"), ValueError, "CUDA_VISIBLE_DEVICES"),
        (lambda e, cpu, gpus: e.get_memory_growth(cpu), KeyError, "CPU"),
        (lambda e, cpu, gpus: e.get_memory_growth("GPU:0"), ValueError, "Unrecognized device"),
        (lambda e, cpu, gpus: e.set_memory_growth(cpu, True), ValueError, "memory growth on non-GPU devices"),
        (lambda e, cpu, gpus: e.set_virtual_device_configuration(cpu, limited(9)), ValueError, "memory limit on CPU"),
        (lambda e, cpu, gpus: e.set_virtual_device_configuration(gpus[0], limited(None)), ValueError, "is required"),
        (lambda e, cpu, gpus: e.set_virtual_device_configuration(gpus[0], limited(9, 2)), ValueError, "2 devices"),
        (lambda e, cpu, gpus: e.get_virtual_device_configuration("x"), ValueError, "Unrecognized device"),
        (lambda e, cpu, gpus: e.set_device_policy("odd"), ValueError, "Not a valid device policy: 'odd'"),
    ],
)
def test_what_is_refused(two_gpus, call, kind, message):
    experimental = config.experimental
    with pytest.raises(kind, match=message):
        call(experimental, experimental.list_physical_devices("CPU")[0], two_gpus)


def test_memory_does_not_grow_where_it_is_limited(two_gpus):
    config.experimental.set_virtual_device_configuration(two_gpus[0], limited(9))
    with pytest.raises(ValueError, match="when virtual devices configured"):
        config.experimental.set_memory_growth(two_gpus[0], True)


def test_functions_run_as_python(monkeypatch):
    calls = []

    @tf.function
    def doubled(x):
        calls.append(x)
        return x * 2

    config.experimental_run_functions_eagerly(True)
    try:
        results = [doubled(tf.constant(1)), doubled(tf.constant(2))]
    finally:
        config.experimental_run_functions_eagerly(False)
    results.append(doubled(tf.constant(3)))
    results.append(doubled(tf.constant(4)))
    with tf.Session() as session:
        assert session.run(results) == [2, 4, 6, 8]
    assert len(calls) == 3, "twice as Python, and once to be traced"
