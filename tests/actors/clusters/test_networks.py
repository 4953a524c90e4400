"""Networks that fail: hosts of this machine whose cables are cut, for a while or for ever, both ways or one."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import threading
import time
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("ray")

import tfray as tf
from tests.support.chaos_training import BATCH, linear_model, noisy_data
from tests.support.leftovers import actor_processes, open_sockets, stored_bytes, threads, wait_for_store
from tests.support.links import hosts
from tests.support.processes import PATIENCE_S, free_port, wait_for
from tests.support.training_models import classification_data, scaling
from tests.support.waiting import Task
from tfray.actors.links import ray_calls
from tfray.errors import OpError, UnavailableError

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PS, WORKER = "/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:CPU:0"
STANDBY = "/job:ps/task:1/device:CPU:0"
"""Of the only shard, in runs with ``replicated_shards``."""

HOSTS = 3
NOTICED_S = 40.0
"""No wait is longer than this after a cut."""

SIZE = 2_000_000
"""Numbers of the parameter: it goes over streams."""


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A network of three hosts with Ray; this process is on a fourth."""
    import ray

    reason = hosts.why_not()
    if reason:
        pytest.skip(reason)
    ray.shutdown()
    folder = tmp_path_factory.mktemp("ray", numbered=False)
    with pytest.MonkeyPatch.context() as patch, hosts.network(free_port()) as made:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_TMPDIR", str(folder))
        home = made.start_ray(folder / "head.log")
        try:
            wait_for(lambda: _joined(ray, made))
            for _ in range(HOSTS):
                made.add().start_ray()
            wait_for(lambda: len(_alive(ray)) == 1 + HOSTS)
            yield made
        finally:
            ray.shutdown()
            home.terminate()
            home.wait(PATIENCE_S)


def _joined(ray, network):
    try:
        ray.init(f"{network.address}:{network.port}", _node_ip_address=network.address, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError):
        ray.shutdown()
    return ray.is_initialized()


def _all_back(ray, network):
    """Whether each host is free, and does what it is asked.

    A node that was taken for dead learns that after a while, and ends.
    """
    for host in network.hosts:
        host.restart_ray_if_ended()
    if len(_alive(ray)) != 1 + len(network.hosts) or ray.available_resources().get("away") != len(network.hosts):
        return False

    def answer():
        return True

    asked = [ray.remote(answer).options(num_cpus=0.1, resources={each.name: 0.1}).remote() for each in network.hosts]
    answered, silent = ray.wait(asked, num_returns=len(asked), timeout=10)
    for call in silent:
        ray.cancel(call, force=True)
    return len(answered) == len(asked)


def _alive(ray):
    return [node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]]


@pytest.fixture
def whole(network):
    """The network with all of its cables."""
    import ray

    yield network
    for host in network.hosts:
        host.mend()
    # A node that Ray took for dead ends when it hears of that; its place is taken by a new one.
    wait_for(lambda: _all_back(ray, network))


@pytest.fixture
def cluster(whole):
    first, second, _ = whole.hosts
    jobs = {
        "ps": tf.JobSpec(1, num_cpus=0.1, resources={first.name: 0.1}),
        "worker": tf.JobSpec(1, num_cpus=0.1, resources={second.name: 0.1}),
    }
    with tf.Cluster(jobs, start_timeout_s=PATIENCE_S) as cluster:
        yield cluster


@pytest.fixture
def step():
    """A variable on the parameter server, and a step of the worker that adds one to each of its numbers."""
    with tf.device(PS):
        v = tf.Variable(tf.zeros([SIZE]))
        counted = tf.Variable(0, dtype=tf.int64)
    with tf.device(WORKER):
        ones = v * 0.0 + 1.0
    with tf.device(PS), tf.control_dependencies([tf.assign_add(v, ones)]):
        step = tf.assign_add(counted, 1).op
    return v, counted, step


def steps_until_an_error(session, step):
    """How many steps ended, and the error of the one that did not."""
    ended = 0
    while True:
        try:
            session.run(step)
        except tf.errors.OpError as error:
            return ended, error
        ended += 1


def goes_on(cluster, step):
    """Whether a session can be run: after a cut Ray's own connections need a moment."""
    with tf.Session(cluster) as session:
        try:
            session.run(step)
        except UnavailableError:
            return False
    return True


@pytest.mark.fault(
    "Machines and networks",
    "The network between machines fails, both ways or one way only.",
    happens="A session's step raises `tf.errors.UnavailableError` after about 20 s.",
    promise="No wait is longer than 40 s. Another session goes on with what the parameter servers hold.",
)
@pytest.mark.parametrize("cable", ["worker", "ps"])
@pytest.mark.parametrize("lost", ["both ways", "to the other task", "to the driver"])
def test_a_cut_ends_the_steps_of_a_session_in_time(whole, cluster, step, cable, lost):
    v, counted, step = step
    here, there = whole.hosts[1::-1] if cable == "worker" else whole.hosts[:2]
    with tf.Session(cluster) as session:
        session.run([v.initializer, counted.initializer])
        for _ in range(3):
            session.run(step)
        running = Task(steps_until_an_error, session, step)
        began = time.monotonic()
        if lost == "both ways":
            here.cut()
        else:
            here.mute(there.address if lost == "to the other task" else whole.address)
        _, error = running.result()
        assert isinstance(error, UnavailableError), error
        assert time.monotonic() - began < NOTICED_S


def test_after_a_cut_another_session_goes_on_and_nothing_of_before_disturbs_it(whole, cluster, step):
    v, counted, step = step
    with tf.Session(cluster) as session:
        session.run([v.initializer, counted.initializer])
        session.run(step)
        running = Task(steps_until_an_error, session, step)
        whole.hosts[1].cut()
        running.result()
    whole.hosts[1].mend()
    import ray

    wait_for(lambda: _all_back(ray, whole))
    # When the cable is there again before Ray takes the node for dead, the actor lives on.
    assert Task(cluster.replace_dead, PATIENCE_S).result() in ([], [WORKER])
    wait_for(lambda: goes_on(cluster, step))
    with tf.Session(cluster) as session:
        before, number = session.run([v, counted])  # the parameter server has kept both
        for _ in range(5):
            session.run(step)
        after, ended = session.run([v, counted])
    assert ended == number + 5
    np.testing.assert_array_equal(after, before + 5)
    assert len(set(before)) == 1  # whatever became of the step that was cut, it was not done in part


@pytest.mark.fault(
    "Machines and networks",
    "The network fails for a few seconds.",
    happens="Steps take longer.",
    promise="Every step is done once.",
)
@pytest.mark.parametrize("cable", ["worker", "ps"])
def test_a_short_cut_only_slows_steps(whole, cluster, step, cable):
    v, counted, step = step
    with tf.Session(cluster) as session:
        session.run([v.initializer, counted.initializer])
        session.run(step)
        done = Task(lambda: [session.run(step) for _ in range(30)])
        host = whole.hosts[cable == "worker"]
        host.cut()
        time.sleep(4)  # what is measured: a cut of that length
        host.mend()
        done.result()
        assert session.run(counted) == 31
        np.testing.assert_array_equal(session.run(v), np.full(SIZE, 31, np.float32))


# -- replicated training ----------------------------------------------------------------------------------


class Cutting:
    """Cuts the host of a task off when a step has ended, and notes how long steps take.

    Args:
        network: The network.
        clusters: The clusters that trainers start.
        device: The task's device.
        step: After which step.
        from_device: The task whose host it reaches no more; None for a cut both ways, from everybody.
        for_s: Seconds until the cut is mended; None for never. Some steps later the run waits for that.
    """

    def __init__(self, network, clusters, device, step, from_device=None, for_s=None):
        self._network, self._clusters, self._device, self._step = network, clusters, device, step
        self._from_device, self._for_s = from_device, for_s
        self._mended = threading.Event()
        self._last = None
        self.longest_s = 0.0
        self.host = None

    def __call__(self, record):
        now = time.monotonic()
        self.longest_s = max(self.longest_s, now - (self._last or now))
        if record.step == self._step and self.host is None:
            self._cut()
        if record.step == self._step + 20 and self._for_s is not None:
            assert self._mended.wait(self._for_s + PATIENCE_S)
        self._last = time.monotonic()

    def _cut(self):
        address = self._address_of(self._device)
        self.host = next(host for host in self._network.hosts if host.address == address)
        if self._from_device is None:
            self.host.cut()
        else:
            self.host.mute(self._address_of(self._from_device))
        if self._for_s is not None:
            threading.Timer(self._for_s, self._mend).start()

    def _mend(self):
        self.host.mend()
        self._mended.set()

    def _address_of(self, device):
        import ray

        node = ray.get(self._clusters[-1].actor(device).ready.remote()).node
        (address,) = [each["NodeManagerAddress"] for each in ray.nodes() if each["NodeID"] == node]
        return address


def counting_model(features, labels):
    """A variable that counts the steps, and another that is large."""
    steps = tf.train.get_or_create_global_step()
    w = tf.Variable(tf.zeros([1_500_000]), name="w")
    loss = tf.reduce_mean(tf.square(w)) + tf.reduce_mean(features) * 0.0
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=steps)
    return tf.train.ModelSpec(loss, step, metrics={"counted": tf.cast(steps.value(), tf.float32)})


def trained(on_step, scaling_options, **options):
    steps = 60
    result = tf.train.Trainer(
        counting_model,
        tf.train.array_input(*classification_data(), batch_size=24),
        scaling(cpus_per_worker=0.5, **scaling_options),
        tf.train.RunConfig(steps=steps, address="auto", on_step=on_step, logdir=None, **options),
    ).fit()
    assert result.steps == steps
    assert [record.step for record in result.history] == list(range(1, steps + 1))
    assert result.variables["global_step"] == steps
    return result


class Counting:
    """Counts the bytes that cross the cable of a host, between two steps."""

    def __init__(self, host, first, last):
        self._host, self._first, self._last, self._before = host, first, last, 0
        self.per_step = 0.0

    def __call__(self, record):
        if record.step == self._first:
            self._before = self._host.crossed_bytes
        elif record.step == self._last:
            self.per_step = (self._host.crossed_bytes - self._before) / (self._last - self._first)


@pytest.mark.parametrize("combine", [True, False])
def test_parameters_and_gradients_cross_once_for_a_node(whole, combine):
    """Four workers on two hosts, and the shards on a third."""
    counting = Counting(whole.hosts[0], 10, 50)
    on = {"worker_resources": {"away": 0.5}, "parameter_server_resources": {whole.hosts[0].name: 0.1, "away": 0.5}}
    trained(counting, {"workers": 4, "parameter_servers": 2, "combine_on_nodes": combine, **on})
    gradients = 2 if combine else 4
    assert counting.per_step == pytest.approx((2 + gradients) * 6e6, rel=0.05)


MODES = pytest.mark.parametrize(
    "mode", [{}, {"backup_workers": 1}, {"mode": "async"}], ids=["synchronous", "backup", "asynchronous"]
)
SECOND = "/job:worker/task:1/device:CPU:0"
AT_HOME = {"worker_resources": {"away": 1}, "parameter_server_resources": {"home": 0.1}}
"""Shards are on the host of the driver."""

AWAY = {"worker_resources": {"away": 1}, "parameter_server_resources": {"away": 1}}


@pytest.mark.fault(
    "Machines and networks",
    "The machine of a worker is cut off while a Trainer runs.",
    happens="The run goes on without the worker, in every mode, and with it again when the network is back.",
    promise="Every step is done once, and none waits longer than 40 s.",
)
@MODES
@pytest.mark.parametrize("for_s", [None, 5.0, 60.0])
def test_a_trainer_goes_on_without_a_worker_that_is_cut_off(whole, clusters, mode, for_s):
    cutting = Cutting(whole, clusters, SECOND, 10, for_s=for_s)
    trained(cutting, {"workers": 2, **AT_HOME, **mode})
    assert cutting.host is not None and cutting.longest_s < NOTICED_S


@pytest.mark.fault(
    "Machines and networks",
    "A worker no longer reaches a parameter server, and the driver reaches both.",
    happens="The run goes on without the worker.",
    promise="Every step is done once, and none waits longer than 40 s.",
)
@MODES
@pytest.mark.parametrize("mute", ["worker", "shard"])
def test_a_trainer_goes_on_without_a_worker_that_does_not_reach_its_shard(whole, clusters, mode, mute):
    ends = (SECOND, PS) if mute == "worker" else (PS, SECOND)
    cutting = Cutting(whole, clusters, ends[0], 10, from_device=ends[1])
    trained(cutting, {"workers": 2, **AWAY, **mode}, max_worker_restarts=0)
    assert cutting.host is not None and cutting.longest_s < NOTICED_S


def test_the_worker_that_combines_for_its_host_is_cut_off(whole, clusters):
    """With it the other worker of that host. The two of another host go on."""
    cutting = Cutting(whole, clusters, WORKER, 10)
    where = {"worker_resources": {"away": 0.5}, "parameter_server_resources": {"home": 0.1}}
    trained(cutting, {"workers": 4, **where})
    assert cutting.host is not None and cutting.longest_s < NOTICED_S


@pytest.mark.parametrize("for_s", [None, 5.0])
def test_an_elastic_run_loses_a_host_while_others_come(whole, clusters, for_s):
    cutting = Cutting(whole, clusters, WORKER, 10, for_s=for_s)
    trained(cutting, {"workers": (1, 3), **AT_HOME})
    assert cutting.host is not None and cutting.longest_s < NOTICED_S


@pytest.mark.fault(
    "Machines and networks",
    "The machine of a parameter server is cut off while a Trainer runs.",
    happens="The run goes back to the newest checkpoint, with the server on another machine; after a short cut it just "
    "goes on.",
    promise="Every step is done once.",
)
@pytest.mark.parametrize("for_s", [None, 5.0, 60.0])
@pytest.mark.parametrize("save_every_steps", [1, 5])
def test_a_trainer_recovers_a_shard_that_is_cut_off(whole, clusters, tmp_path, for_s, save_every_steps):
    cutting = Cutting(whole, clusters, PS, 20, for_s=for_s)
    on = {"worker_resources": {"home": 0.1}, "parameter_server_resources": {"away": 1}}
    options = {"checkpoint_dir": tmp_path / "checkpoints", "save_every_steps": save_every_steps}
    trained(cutting, {"workers": 2, **on}, **options)
    assert cutting.host is not None and cutting.longest_s < 2 * NOTICED_S


@pytest.mark.fault(
    "Machines and networks",
    "The machine of a parameter server with a standby is cut off while a Trainer runs.",
    happens="The standby takes its place; after a short cut the run just goes on.",
    promise="Every step is done once, and none waits longer than 40 s. There need be no checkpoint.",
)
@pytest.mark.parametrize("for_s", [None, 5.0, 60.0])
@pytest.mark.parametrize("task", [0, 1], ids=["shard", "standby"])
def test_a_trainer_goes_on_without_a_shard_that_has_a_standby(whole, clusters, for_s, task):
    cutting = Cutting(whole, clusters, f"/job:ps/task:{task}/device:CPU:0", 20, for_s=for_s)
    on = {"worker_resources": {"home": 0.1}, "parameter_server_resources": {"away": 1}}
    trained(cutting, {"workers": 2, "replicated_shards": True, **on})
    assert cutting.host is not None and cutting.longest_s < NOTICED_S


@pytest.mark.fault(
    "Machines and networks",
    "A parameter server and its standby are still reached by others, and no longer reach each other or the others.",
    happens="The run goes on with one of the two.",
    promise="Every step is done once, and none waits longer than 40 s.",
)
@pytest.mark.parametrize(
    "ends",
    [(PS, STANDBY), (STANDBY, PS), (PS, WORKER), (STANDBY, WORKER)],
    ids=["shard to standby", "standby to shard", "shard to all others", "standby to all others"],
)
def test_a_cut_of_one_direction_leaves_one_of_a_shard_and_its_standby(whole, clusters, ends):
    """The workers are on the host of the driver."""
    cutting = Cutting(whole, clusters, ends[0], 20, from_device=ends[1])
    on = {"worker_resources": {"home": 0.1}, "parameter_server_resources": {"away": 1}}
    trained(cutting, {"workers": 2, "replicated_shards": True, **on})
    assert cutting.host is not None and cutting.longest_s < NOTICED_S


def test_a_run_saves_while_a_worker_is_cut_off(whole, clusters, tmp_path):
    cutting = Cutting(whole, clusters, SECOND, 10)
    trained(cutting, {"workers": 2, **AT_HOME}, checkpoint_dir=tmp_path / "checkpoints", save_every_steps=1)
    assert cutting.host is not None and cutting.longest_s < NOTICED_S


@pytest.mark.fault(
    "Machines and networks",
    "The driver is cut off from all other machines while a Trainer runs.",
    happens="After a short cut the run goes on. After a long one it ends with UnavailableError.",
    promise="It waits at most 40 s; what it has saved is whole.",
)
@pytest.mark.parametrize("for_s", [None, 5.0])
def test_the_driver_is_cut_off_from_everybody(whole, clusters, tmp_path, for_s):
    folder, stopped = tmp_path / "checkpoints", []

    def cut(record):
        if record.step == 20 and not stopped:
            stopped.append(time.monotonic())
            for host in whole.hosts:
                host.cut()
            if for_s is not None:
                threading.Timer(for_s, lambda: [host.mend() for host in whole.hosts]).start()

    options = {"checkpoint_dir": folder, "save_every_steps": 5, "max_recoveries": 0}
    if for_s is None:
        with pytest.raises(UnavailableError):
            trained(cut, {"workers": 2, **AWAY}, **options)
        assert time.monotonic() - stopped[0] < NOTICED_S
        assert tf.train.latest_checkpoint(folder)
    else:
        trained(cut, {"workers": 2, **AWAY}, **options)


# -- everything at once -----------------------------------------------------------------------------------


class Strikes:
    """Cuts hosts off, kills and freezes processes, one after the other, on a thread, until it is stopped.

    Args:
        network: The network.
        clusters: The clusters that trainers start.
        seed: Of what happens when.
    """

    def __init__(self, network, clusters, seed):
        self._network, self._clusters, self._random = network, clusters, random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._strike, daemon=True)
        self.done = Counter()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(PATIENCE_S)

    def _strike(self):
        kinds = [self._cut, self._cut, self._kill_worker, self._freeze_worker, self._kill_shard]
        while not self._over.wait(self._random.uniform(5, 15)):
            kind = self._random.choice(kinds)
            if not self._clusters:
                continue  # the run has not begun
            with contextlib.suppress(
                ProcessLookupError, IndexError, KeyError, OpError
            ):  # it is gone, or does not answer
                kind()
                self.done[kind.__name__] += 1

    def _cut(self):
        host = self._random.choice(self._network.hosts)
        host.cut()
        self._over.wait(self._random.choice([2.0, 5.0, 30.0]))
        host.mend()
        host.restart_ray_if_ended()

    def _process(self, job):
        cluster = self._clusters[-1]
        device = self._random.choice([each for each in cluster.devices if each.startswith(f"/job:{job}/")])
        return ray_calls.outcome(cluster.actor(device).ready.remote(), device, 5.0).pid

    def _kill_worker(self):
        os.kill(self._process("worker"), signal.SIGKILL)

    def _kill_shard(self):
        os.kill(self._process("ps"), signal.SIGKILL)

    def _freeze_worker(self):
        pid = self._process("worker")
        os.kill(pid, signal.SIGSTOP)
        self._over.wait(self._random.uniform(1, 10))
        os.kill(pid, signal.SIGCONT)


def resident_bytes():
    """Memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.timeout(1800)
@pytest.mark.fault(
    "Machines and networks",
    "Machines are cut off and come back, and processes are killed and frozen, for ten minutes.",
    happens="The run goes on whenever it can.",
    promise="Every step is done once, what is learned is what an undisturbed run learns, and nothing stays behind.",
)
def test_ten_minutes_of_cuts_kills_and_returns(whole, clusters, tmp_path):
    import ray

    steps, late = 2400, 400

    def run(scaling_config, **options):
        return tf.train.Trainer(
            linear_model,
            tf.train.array_input(*noisy_data(), BATCH, shuffle_seed=7),
            scaling_config,
            tf.train.RunConfig(steps=steps, logdir=None, seed=3, **options),
        ).fit()

    def learned(result):
        return np.mean([record.metrics["loss"] for record in result.history[-late:]])

    undisturbed = run(None, local=True)
    where = {"worker_resources": {"away": 0.5}, "parameter_server_resources": {"home": 0.1}}
    held = len(open_sockets()), len(threads()), stored_bytes(ray), resident_bytes()
    pause = threading.Event()  # it is never set: steps take a quarter of a second, so that they last ten minutes
    with Strikes(whole, clusters, seed=5) as strikes:
        result = run(
            scaling((2, 4), 2, cpus_per_worker=0.5, **where),
            address="auto",
            checkpoint_dir=tmp_path / "checkpoints",
            save_every_steps=20,
            max_worker_restarts=10_000,
            max_recoveries=10_000,
            on_step=lambda record: pause.wait(0.25),
        )
    print(dict(strikes.done), result.statistics)
    assert sum(strikes.done.values()) > 20
    assert [record.step for record in result.history] == list(range(1, steps + 1))
    assert result.variables["global_step"] == result.variables["count_0"] == result.variables["count_1"] == steps
    assert learned(result) == pytest.approx(learned(undisturbed), rel=0.1)
    for host in whole.hosts:
        host.mend()
    wait_for(lambda: _all_back(ray, whole))
    wait_for(lambda: not actor_processes())
    clusters.clear()
    gc.collect()
    wait_for_store(ray, held[2])
    wait_for(lambda: len(threads()) <= held[1])
    assert len(open_sockets()) <= held[0], open_sockets()
    assert resident_bytes() < held[3] + (200 << 20)
