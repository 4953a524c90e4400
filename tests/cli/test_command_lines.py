"""Command lines that ask for what cannot be: one clear line each, and the exit code that README.md promises."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.script import SCRIPT, run

LOCAL = ["--local", "--no-progress"]


@pytest.fixture(autouse=True)
def folder(tmp_path_factory, monkeypatch):
    """A folder with programs and files that are not what they should be, as the current one."""
    here = tmp_path_factory.mktemp("program")
    (here / "script.py").write_text(SCRIPT)
    (here / "wrong_syntax.py").write_text("def build(:\n")
    (here / "importing.py").write_text("import no_such_thing_at_all\n")
    (here / "raising.py").write_text("raise RuntimeError('at import')\n")
    (here / "binary.py").write_bytes(b"\x00\xff\xfe")
    (here / "folder.py").mkdir()
    (here / "empty").mkdir()
    (here / "file").write_text("x")
    (here / "damaged.safetensors").write_bytes(b"\xff" * 100)
    (here / "damaged.index").write_bytes(b"\xff" * 100)
    (here / "lost").mkdir()
    (here / "lost" / "checkpoint").write_bytes(b"\xff\xfe")
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield here
    for name in {"script", "wrong_syntax", "importing", "raising", "binary"} - before:
        sys.modules.pop(name, None)


NO_PROGRAM = [
    ("", "is not SCRIPT.py:FUNCTION"),
    (":", "is not SCRIPT.py:FUNCTION"),
    ("::", "is not SCRIPT.py:FUNCTION"),
    ("script.py:", "is not SCRIPT.py:FUNCTION"),
    (":build", "is not SCRIPT.py:FUNCTION"),
    ("absent.py:build", "there is no file absent.py"),
    ("folder.py:build", "there is no file folder.py"),
    ("empty:build", "has no function 'build'"),
    ("absent:build", "there is no module 'absent'"),
    (".:build", "neither a script"),
    ("..x:build", "neither a script"),
    ("a..b:build", "neither a script"),
    ("1x:build", "there is no module '1x'"),
    ("a b:build", "there is no module 'a b'"),
    ("os.path.nothing:join", "there is no module"),
    ("script.py:limit", "has no function 'limit'"),
    ("script.py:build.steps", "has no function 'build.steps'"),
    ("script.py:needs", "missing a required argument: 'argument'"),
    ("builtins:int", "is no function of a program"),
]
"""What names no function that could be called."""

BROKEN_PROGRAM = [
    ("wrong_syntax.py:build", "wrong_syntax.py failed: SyntaxError: invalid syntax (wrong_syntax.py, line 1)"),
    ("wrong_syntax:build", "SyntaxError"),
    ("importing.py:build", "ModuleNotFoundError: No module named 'no_such_thing_at_all'"),
    ("importing:build", "importing.py:1"),
    ("raising.py:build", "RuntimeError: at import"),
    ("raising:build", "raising.py:1, in <module>"),
    ("binary.py:build", "null bytes"),
    ("script.py:raises", "raises failed: RuntimeError: a mistake of the program in two lines"),
]
"""What fails before it has said what to run."""


@pytest.mark.fault(
    "Command line",
    "A command cannot be met: a wrong option, target, path or address.",
    happens="One line that says what is wrong, and exit code 2.",
    promise="No traceback, and nothing is started.",
)
@pytest.mark.parametrize(("target", "message"), NO_PROGRAM)
@pytest.mark.parametrize("command", [["run", *LOCAL], ["graph"], ["plan", "--local"], ["timeline", *LOCAL]])
def test_a_target_that_is_no_function(command, target, message):
    if command[0] == "plan" and ":" not in target:
        message = "neither a script"
    expect(run(*command, target), 2, message)


@pytest.mark.fault(
    "Command line",
    "The program fails.",
    happens="The lines of the program, and exit code 1. `--debug` shows the whole traceback.",
    promise="Lines of tfray do not hide the cause.",
)
@pytest.mark.parametrize(("target", "message"), BROKEN_PROGRAM)
@pytest.mark.parametrize("command", [["run", *LOCAL], ["graph"], ["plan", "--local"], ["timeline", *LOCAL]])
def test_a_program_that_fails_before_anything_runs_says_where(command, target, message):
    result = run(*command, target)
    expect(result, 1, message)
    assert "--debug shows the traceback" in result.stderr
    assert isinstance(run(*command, target, "--debug").exception, (ImportError, RuntimeError, SyntaxError, ValueError))


RUN = ["run", "script.py:build", *LOCAL]
REQUESTS = [
    (["run", "script.py:nothing", *LOCAL], "nothing returned a NoneType, expected a tf.train.Trainer"),
    (["run", "script.py:a_pair", *LOCAL], "returned a int"),
    (["run", "script.py:no_batches", *LOCAL], "returned a int for the test batches"),
    *(
        ([*RUN, option, value], option)
        for option, values in {
            "--workers": ["-1", "x", "", "1.5", "2:", "::", "nan", "²"],
            "--ps": ["-1", "x", "", "1.5", "nan", "²"],
            "--backup-workers": ["x", "", "nan"],
            "--steps": ["x", "", "1e3", "nan"],
            "--staleness": ["x"],
            "--accumulate": ["x"],
            "--seed": ["x", ""],
            "--cpus-per-worker": ["x"],
            "--max-restarts": ["x"],
            "--start-timeout": ["x"],
            "--working-dir": ["nowhere", "file"],
            "--save-every": ["", "s", "-1", "x", "1d", "²"],
            "--keep-checkpoints": ["x"],
            "--elastic-batch": ["x", ""],
            "--mode": ["x", ""],
            "--bad-gradients": ["x"],
            "--wire-dtype": ["x"],
            "--nonsense": ["x"],
        }.items()
        for value in values
    ),
    *(
        ([*RUN, option, path], f"cannot write {path}: {reason}")
        for option in ("--json", "--plot", "--variables", "--timeline")
        for path, reason in {
            ".": "it is a directory",
            "/proc/nowhere/x": "No such file or directory",
            "/proc/x": "No such file or directory",
            "file/x": "Not a directory",
            "file/x/y": "Not a directory",
            "n" * 300: "File name too long",
        }.items()
    ),
    *(
        ([*RUN, option, ""], f"{option} is an empty path")
        for option in ("--json", "--plot", "--variables", "--timeline")
    ),
    *(([*RUN, "--checkpoint-dir", path], path) for path in ("file", "file/x", "/dev/null/x", "/proc/nowhere/x")),
    *(([*RUN, "--logdir", path], path) for path in ("file", "file/x", "/dev/null/x", "/proc/x")),
    ([*RUN, "--pdb", "--nonsense"], "--nonsense"),
    (["run", "script.py:build", "--pdb"], "--local"),
    *(
        ([*command, setting], message)
        for command in (RUN, ["graph", "script.py:build"], ["plan", "script.py:build", "--local"])
        for setting, message in {
            "x": "'x' is not KEY=VALUE",
            "=1": "'=1' is not KEY=VALUE",
            "1=2": "'1=2' is not KEY=VALUE",
            "a b=1": "'a b=1' is not KEY=VALUE",
            "absent=1": "unexpected keyword argument 'absent'",
            "class=1": "unexpected keyword argument 'class'",
        }.items()
    ),
    *(
        (["timeline", "script.py:build", *LOCAL, "--steps", steps], "is not FIRST:LAST")
        for steps in ("", "x", "0", "3:2", "-1", "1:2:3", "²:³")
    ),
    *(
        (["timeline", "script.py:build", *LOCAL, "-o", path], f"cannot write {path}")
        for path in (".", "/proc/x.json", "file/x")
    ),
    (["timeline", "script.py:build", *LOCAL, "-o", ""], "--output is an empty path"),
    (["timeline", "script.py:build", *LOCAL, "--ps", "auto"], "--ps"),
    *((["graph", "script.py:build", "--depth", depth], "--depth") for depth in ("-1", "0", "x", "")),
    *(
        (["plan", "script.py:graph", option, value], option)
        for option, values in {
            "--workers": ["0", "-1", "x"],
            "--ps": ["-1", "x", "", "auto"],
            "--nodes": ["0", "-1", "x"],
            "--placement": ["x"],
        }.items()
        for value in values
    ),
    *((["plan", "script.py:graph", "--fetch", name], "the graph has no") for name in ("", "nowhere", "a:b:c", ":")),
    (["plan", "script.py:graph", "--fetch", "fed:7"], "fed"),
    (["plan", "script.py:graph", "--measure"], "--measure cannot feed fed"),
    (["plan", "script.py:build", "--local", "--fetch", "x"], "--fetch is for graphs"),
    *((["board", path], f"there is no folder '{path}'") for path in ("nowhere", "file")),
    (["board", ""], "LOGDIR is an empty path"),
    *((["board", "empty", "--port", port], "--port") for port in ("x", "-1", "70000")),
    *(
        (["checkpoint", path, *more], message)
        for more in ([], ["--verify"], ["--json"])
        for path, message in {
            "": "",
            "nowhere": "no checkpoint",
            "empty": "no checkpoint",
            "file": "no checkpoint",
            "damaged.safetensors": "damaged.safetensors",
            "damaged": "damaged.index",
            "lost": "",
            "/dev/null": "no checkpoint",
            "script.py": "no checkpoint",
            "nosuchscheme://x/y": "nosuchscheme",
        }.items()
    ),
    *(
        ([*command, "--address", address], "is not a cluster address")
        for command in (["devices"], ["launch", "script.py"][:1], ["run", "script.py:build"])
        for address in ("x", "host", "host:", "host:x", ":1", "127.0.0.1:²", "127.0.0.1:-1")
        if command != ["launch"]
    ),
    (["devices", "--address", "ray://x:1"], "cannot join 'ray://x:1'"),
    (["devices", "--address", "127.0.0.1:1"], "no Ray cluster answers at 127.0.0.1:1"),
    (["devices", "--address", "127.0.0.1:99999"], "127.0.0.1:99999"),
    (["devices", "extra"], "extra"),
    (["ops", "--nonsense"], "--nonsense"),
    (["ops", "extra"], "extra"),
    ([""], "No such command"),
    (["launch"], "Missing argument"),
    *((["launch", script], "there is no file") for script in ("absent.py", "empty")),
    *(
        (["launch", option, value, "script.py"], option)
        for option, values in {
            "--ps": ["-1", "x", "nan"],
            "--workers": ["0", "-1", "x"],
            "--cpus-per-task": ["nan", "-1", "inf", "x"],
            "--max-restarts": ["-1", "x"],
            "--grace": ["nan", "-1", "inf"],
            "--start-timeout": ["nan", "-1", "inf"],
            "--working-dir": ["nowhere"],
        }.items()
        for value in values
    ),
    (["launch", "--address", "", "script.py"], "is not a cluster address"),
]


@pytest.mark.fault(
    "Command line",
    "A command cannot be met: a wrong option, target, path or address.",
    happens="One line that says what is wrong, and exit code 2.",
    promise="No traceback, and nothing is started.",
)
@pytest.mark.parametrize(("arguments", "message"), REQUESTS)
def test_a_request_that_cannot_be_met_is_one_line(arguments, message, monkeypatch):
    started = []
    if importlib.util.find_spec("ray") is not None:
        monkeypatch.setattr("ray.init", lambda **options: started.append(options))
    expect(run(*arguments), 2, message)
    assert not started


def expect(result, exit_code, message):
    assert result.exit_code == exit_code, (result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("tfray: ") and result.stderr.count("\n") == 1, result.stderr
    assert message in result.stderr


# -- failures of a run ---------------------------------------------------------------------------------


@pytest.mark.fault(
    "Command line",
    "The program fails.",
    happens="The lines of the program, and exit code 1. `--debug` shows the whole traceback.",
    promise="Lines of tfray do not hide the cause.",
)
@pytest.mark.parametrize(
    ("target", "message", "function"),
    [
        ("script.py:fails_in_a_step", "KeyError: 'price'", "broken"),
        ("script.py:broken_model", "NameError: name 'undefined_name' is not defined", "model"),
    ],
)
def test_an_error_of_the_program_while_it_runs_shows_the_programs_lines_only(target, message, function):
    result = run("run", target, *LOCAL)
    assert result.exit_code == 1 and result.stderr.startswith(f"tfray: {message} (")
    assert f"in {function}\n" in result.stderr and "script.py" in result.stderr
    assert "trainer.py" not in result.stderr and "cli.py" not in result.stderr
    assert message.partition(":")[0] in repr(run("run", target, *LOCAL, "--debug").exception)


def test_checks_of_outputs_leave_no_file_behind(folder):
    (folder / "kept.json").write_text("kept")
    expect(run(*RUN, "--json", "kept.json", "--variables", "new/v.npz", "--mode", "async", "--staleness", "-1"), 2, "")
    assert (folder / "kept.json").read_text() == "kept" and os.listdir(folder / "new") == []


@pytest.mark.rows(every=2)
@pytest.mark.fault(
    "Command line",
    "An output cannot be written at the end of a run.",
    happens="One line that names it, and exit code 1.",
    promise="The other outputs are written.",
)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("option", ["--json", "--plot", "--variables", "--timeline"])
def test_a_full_disk_costs_one_output_and_no_other(folder, option):
    pytest.importorskip("matplotlib")
    outputs = {"--json": "h.json", "--plot": "p.png", "--variables": "v.npz", "--timeline": "t.json"}
    arguments = [text for pair in (outputs | {option: "/dev/full"}).items() for text in pair]
    result = run("run", "script.py:build", "steps=5", *LOCAL, *arguments)
    expect(result, 1, "/dev/full: No space left on device")
    assert {path for path in outputs.values() if (folder / path).exists()} == set(outputs.values()) - {outputs[option]}


def read_only(folder):
    """Mount a folder that nobody may write to, where that is allowed."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "none", str(folder)], capture_output=True)
    if done.returncode or shutil.which("umount") is None:
        pytest.skip("only root may mount")
    return folder


@pytest.mark.fault(
    "Files",
    "The disk is read-only.",
    happens="`tf.errors.PermissionDeniedError` with the path. `tfray run` says so before training.",
    promise="No failure to write passes in silence, whatever is written.",
)
@pytest.mark.parametrize("option", ["--json", "--checkpoint-dir", "--logdir"])
def test_a_read_only_disk_is_noticed_before_training(folder, option):
    mounted = read_only(folder / "mounted")
    try:
        result = run(*RUN, option, str(mounted / "x"))
    finally:
        subprocess.run(["umount", str(mounted)], check=True)
    expect(result, 2, f"{mounted / 'x'}")
    assert "ead-only file system" in result.stderr


# -- between-graph programs ----------------------------------------------------------------------------


@pytest.mark.fault(
    "Command line",
    "Options of `tfray launch` come after the script.",
    happens="A line says that the program gets them.",
    promise="No option goes astray in silence.",
)
def test_options_of_launch_after_the_script_are_remarked_upon(monkeypatch):
    from tfray.cli import launch_command

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(launch_command.ray_runtime, "connect", stop)
    result = run("launch", "script.py", "--ps", "2", "--train_steps=5")
    assert result.stderr.startswith("tfray: the program gets --ps: options of `tfray launch` come before script.py")
    assert "train_steps" not in result.stderr
    for arguments in (["script.py", "--", "--ps", "2"], ["--ps", "2", "script.py", "--train_steps=5"]):
        assert "come before" not in run("launch", *arguments).stderr
