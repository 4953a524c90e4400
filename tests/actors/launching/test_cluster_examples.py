"""What `examples/cluster/` says, and that programs run on clusters unmodified: joined, and as jobs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.support import ROOT
from tests.support.processes import PATIENCE_S, free_port, wait_for
from tfray import cli

FOLDER = ROOT / "examples" / "cluster"
PAGE = (FOLDER / "README.md").read_text()

yaml = pytest.importorskip("yaml")

RAY_JOB = {
    "spec": {
        "activeDeadlineSeconds", "backoffLimit", "clusterSelector", "deletionStrategy", "entrypoint",
        "entrypointNumCpus", "entrypointNumGpus", "entrypointResources", "jobId", "managedBy", "metadata",
        "rayClusterSpec", "runtimeEnvYAML", "shutdownAfterJobFinishes", "submissionMode", "submitterConfig",
        "submitterPodTemplate", "suspend", "ttlSecondsAfterFinished",
    },
    "rayClusterSpec": {
        "authOptions", "autoscalerOptions", "enableInTreeAutoscaling", "gcsFaultToleranceOptions",
        "headGroupSpec", "headServiceAnnotations", "managedBy", "rayVersion", "suspend", "workerGroupSpecs",
    },
    "headGroupSpec": {
        "enableIngress", "headService", "labels", "rayStartParams", "resources", "serviceType", "template",
    },
    "workerGroupSpec": {
        "groupName", "idleTimeoutSeconds", "labels", "maxReplicas", "minReplicas", "numOfHosts", "rayStartParams",
        "replicas", "resources", "scaleStrategy", "suspend", "template",
    },
    "runtime_env": {"working_dir", "py_modules", "pip", "env_vars"},
}  # fmt: skip
"""The fields of KubeRay's custom resource, and of Ray's runtime environments."""


def test_the_file_for_ray_up_is_what_ray_takes():
    ray = pytest.importorskip("ray")
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    assert schema["additionalProperties"] is False
    config = yaml.safe_load((FOLDER / "ray-up.yaml").read_text())
    jsonschema.validate(config, schema)
    assert config["head_node_type"] in config["available_node_types"]


def test_the_manifest_for_kuberay_names_fields_that_exist():
    job = yaml.safe_load((FOLDER / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    cluster = spec["rayClusterSpec"]
    assert set(spec) <= RAY_JOB["spec"] and set(cluster) <= RAY_JOB["rayClusterSpec"]
    assert set(cluster["headGroupSpec"]) <= RAY_JOB["headGroupSpec"]
    groups = cluster["workerGroupSpecs"]
    assert groups and all(set(group) <= RAY_JOB["workerGroupSpec"] for group in groups)
    assert set(yaml.safe_load(spec["runtimeEnvYAML"])) <= RAY_JOB["runtime_env"]
    for group in [cluster["headGroupSpec"], *groups]:
        (container,) = group["template"]["spec"]["containers"]
        assert container["image"].startswith(f"rayproject/ray:{cluster['rayVersion']}")
    # There is room for what the job asks for.
    cpus = sum(int(group["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"]) for group in groups)
    assert cpus * groups[0]["maxReplicas"] >= 6 + 2


def test_runtime_environments_name_fields_that_exist():
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    assert set(yaml.safe_load(block)) <= RAY_JOB["runtime_env"]


def commands():
    """Every command line of tfray in the folder."""
    texts = [path.read_text() for path in sorted(FOLDER.iterdir())]
    found = [line for text in texts for line in re.findall(r"tfray (?:run|launch|devices) [^`\n]*", text)]
    return [line.split("#")[0].strip() for line in found]


@pytest.mark.parametrize("line", commands())
def test_commands_name_options_that_exist(line, monkeypatch):
    monkeypatch.chdir(ROOT)
    name, *arguments = shlex.split(line)[1:]
    command = cli.main.commands[name]
    context = command.make_context(name, arguments)
    assert isinstance(context, click.Context)
    target = context.params.get("target") or str(context.params.get("script") or "")
    if target:
        path = target.partition(":")[0]
        assert (ROOT / path).is_file() or (ROOT / "examples" / path).is_file()


def test_environment_variables_are_documented():
    code = [*ROOT.glob("actors/**/*.py"), *ROOT.glob("tfray/**/*.py")]
    named = {name for path in code for name in re.findall(r'"(TFRAY_[A-Z_]+)"', path.read_text())}
    assert named and all(f"`{name}`" in PAGE for name in named), named


# -- on clusters -----------------------------------------------------------------------------------------


def run(*arguments, **environment):
    """A command to its end; returns what it printed."""
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def tfray(*arguments, **environment):
    return run(sys.executable, "-m", "tfray.cli", *arguments, **environment)


@pytest.mark.slow
@pytest.mark.ray
def test_a_program_trains_on_a_cluster_that_it_joins(ray_nodes):
    pytest.importorskip("sklearn")
    ray_nodes.add_node(num_cpus=0)
    for _ in range(2):
        ray_nodes.add_node(num_cpus=2)
    options = ["--workers", "2", "--ps", "1", "--steps", "20", "--no-progress"]
    shipped = ["--address", ray_nodes.address, "--working-dir", "examples"]
    assert "20 steps in" in tfray("run", "examples/mlp.py:build", *options, *shipped)
    assert "20 steps in" in tfray("run", "examples/mlp.py:build", *options, RAY_ADDRESS=ray_nodes.address)
    assert len(re.findall(r"^\d+\.", tfray("devices", "--address", ray_nodes.address), re.M)) == 3


HEAD = """
import sys
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
print("address", cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.mark.slow
@pytest.mark.ray
def test_another_token_is_refused(ray_stopped):
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 32}
    # A process reads its token once.
    command = [sys.executable, "-c", HEAD]
    head = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **token}
    )
    try:
        address = next(line.split()[1] for line in head.stdout if line.startswith("address"))
        assert "CPU" in tfray("devices", "--address", address, **token)
        with pytest.raises(AssertionError, match="refuses the one in RAY_AUTH_TOKEN"):
            tfray("devices", "--address", address, **token | {"RAY_AUTH_TOKEN": "b" * 32})
    finally:
        head.communicate(timeout=PATIENCE_S)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.skipif(importlib.util.find_spec("aiohttp") is None, reason="jobs need ray[default]")
def test_programs_run_as_jobs(ray_nodes):
    pytest.importorskip("sklearn")
    port = free_port()
    ray_nodes.add_node(num_cpus=4, include_dashboard=True, dashboard_port=port)
    submit = [str(Path(sys.executable).parent / "ray"), "job", "submit", "--address", f"http://127.0.0.1:{port}"]
    submit += ["--working-dir", str(ROOT / "examples"), "--", sys.executable, "-m", "tfray.cli"]

    def ready():
        done = subprocess.run([*submit, "--version"], capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode == 0

    wait_for(ready)
    output = run(*submit, "run", "mlp.py:build", "--workers", "2", "--ps", "1", "--steps", "20", "--no-progress")
    assert "20 steps in" in output
    output = run(*submit, "launch", "--ps", "1", "--workers", "2", "between_graph_sync.py", "--", "--train_steps=30")
    assert len(re.findall(r"\[worker \d\] 30 steps, loss", output)) == 2
