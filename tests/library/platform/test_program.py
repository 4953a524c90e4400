"""What surrounds a program: flags, `tf.app.run`, logging, options, `tf.compat`."""

from __future__ import annotations

import logging
import subprocess
import sys

import absl.flags
import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.library.platform import flags as flags_module
from tfray.library.platform.flags import (
    DuplicateFlagError,
    Error,
    FlagValues,
    IllegalFlagValueError,
    UnparsedFlagAccessError,
    UnrecognizedFlagError,
)

# -- flags ---------------------------------------------------------------------------------------------


@pytest.fixture
def flags():
    values = FlagValues()
    flags_module.DEFINE_string("data_dir", "/data", "where", flag_values=values)
    flags_module.DEFINE_integer("steps", 10, "how many", flag_values=values)
    flags_module.DEFINE_float("rate", 0.5, "how fast", flag_values=values)
    flags_module.DEFINE_boolean("train", False, "whether to", flag_values=values)
    flags_module.DEFINE_enum("mode", "fast", ["fast", "slow"], "which", flag_values=values)
    flags_module.DEFINE_list("layers", "10,20", "sizes", flag_values=values)
    flags_module.DEFINE_multi_integer("seed", None, "several", flag_values=values)
    return values


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--data_dir=/x"], "data_dir", "/x"),
        (["--data_dir", "/x"], "data_dir", "/x"),
        (["-data_dir", "/x"], "data_dir", "/x"),
        (["--data_dir", "--steps=4"], "data_dir", "--steps=4"),
        (["--data_dir="], "data_dir", ""),
        (["--data_dir=a=b"], "data_dir", "a=b"),
        (["--steps=3"], "steps", 3),
        (["--steps=-3"], "steps", -3),
        (["--steps", "0x10"], "steps", 16),
        (["--steps=1", "--steps=2"], "steps", 2),
        (["--", "--steps=2"], "steps", 10),
        (["other", "--steps=2"], "steps", 2),
        (["--rate=1e-3"], "rate", 1e-3),
        (["--rate", "2"], "rate", 2.0),
        (["--train"], "train", True),
        (["--train", "--notrain"], "train", False),
        (["--train=1"], "train", True),
        (["--train=False"], "train", False),
        (["--mode=slow"], "mode", "slow"),
        ([], "layers", ["10", "20"]),
        (["--layers=1, 2,3"], "layers", ["1", "2", "3"]),
        (["--layers="], "layers", []),
        (["--seed=1", "--seed", "2"], "seed", [1, 2]),
        ([], "seed", None),
    ],
)
def test_arguments_set_flags(flags, arguments, name, value):
    flags(["program", *arguments])
    assert getattr(flags, name) == value and type(getattr(flags, name)) is type(value)


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["a", "--steps", "3", "b"], ["a", "b"]),
        (["--", "--steps=3"], ["--steps=3"]),
    ],
)
def test_the_rest_is_left(flags, arguments, left):
    assert flags(["program", *arguments]) == ["program", *left]


def test_unknown_flags_are_refused_or_left(flags):
    with pytest.raises(UnrecognizedFlagError, match=r"'step'\. Did you mean: steps"):
        flags(["program", "--step=3"])
    with pytest.raises(UnrecognizedFlagError):
        flags(["program", "--nosteps"])
    assert flags(["program", "--other", "--steps=3", "x"], known_only=True) == ["program", "--other", "x"]
    assert flags.steps == 3


@pytest.mark.parametrize("argument", ["--steps=x", "--steps=1.5", "--rate=fast", "--train=maybe", "--mode=other"])
def test_values_that_do_not_fit_are_refused(flags, argument):
    with pytest.raises(IllegalFlagValueError, match=argument.partition("=")[0]):
        flags(["program", argument])


def test_a_missing_value_is_refused(flags):
    with pytest.raises(Error, match="Missing value for flag --steps"):
        flags(["program", "--steps"])


def test_values_can_be_set_and_deleted(flags):
    flags.mark_as_parsed()
    flags.steps = 4
    flags.data_dir = None
    assert flags.steps == 4 and flags.data_dir is None and flags["steps"].default == 10
    with pytest.raises(UnrecognizedFlagError):
        flags.nothing = 1
    with pytest.raises(AttributeError):
        _ = flags.nothing
    del flags.steps
    assert "steps" not in flags


def test_flags_are_parsed_when_first_read(flags, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["program", "--steps=7", "--kernel", "x"])
    with pytest.raises(UnparsedFlagAccessError):
        _ = flags.steps
    flags = flags_module._ParsedFlags(flags)
    assert not flags.is_parsed() and "steps" in flags and "kernel" not in flags
    assert flags.steps == 7 and flags.is_parsed() and flags["steps"].value == 7
    flags.steps = 8
    assert flags(["program"]) == ["program"] and flags.steps == 8
    with pytest.raises(AttributeError):
        _ = flags.kernel


def test_flags_are_those_of_absl():
    assert issubclass(FlagValues, absl.flags.FlagValues)
    name = "flag_of_a_test_of_tfray"
    absl.flags.DEFINE_string(name, "x", "")
    assert name in tf.flags.FLAGS and tf.flags.FLAGS[name] is absl.flags.FLAGS[name]
    delattr(tf.flags.FLAGS, name)
    assert name not in absl.flags.FLAGS and name not in list(tf.flags.FLAGS)


def test_the_older_ways_work(flags):
    flags_module.DEFINE_string(flag_name="older", default_value="x", docstring="what", flag_values=flags)
    assert flags["older"].default == "x" and flags["older"].help == "what"
    assert flags_module._ParsedFlags(flags)._parse_flags(["--steps=2"])[1:] == []
    assert getattr(flags, "__flags")["steps"].value == 2
    assert flags.flag_values_dict()["mode"] == "fast"


def test_a_program_may_define_the_flags_that_absl_has():
    code = "import tfray as tf; tf.flags.DEFINE_string('log_dir', '/logs', ''); tf.app.run(print, ['a'])"
    code = code.replace("print", "lambda argv: print(argv, tf.flags.FLAGS.log_dir)")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert found.stdout == "['a'] /logs\n", found.stderr


def test_flags_are_defined_once(flags):
    with pytest.raises(DuplicateFlagError, match="steps"):
        flags_module.DEFINE_integer("steps", 11, "how many", flag_values=flags)
    with pytest.raises(IllegalFlagValueError):
        flags_module.DEFINE_integer("wrong", "x", "", flag_values=flags)


def test_what_must_hold_is_checked(flags):
    flags_module.DEFINE_string("name", None, "", flag_values=flags)
    flags_module.mark_flag_as_required("name", flags)
    flags_module.register_validator("steps", lambda steps: steps % 2 == 0, "must be even", flags)
    flags_module.DEFINE_integer("bounded", 1, "", 0, 2, flag_values=flags)
    with pytest.raises(IllegalFlagValueError, match="must have a value other than None"):
        flags(["program"])
    with pytest.raises(IllegalFlagValueError, match="must be even"):
        flags(["program", "--name=x", "--steps=3"])
    with pytest.raises(IllegalFlagValueError, match=r"in the range \[0, 2\]"):
        flags(["program", "--bounded=3"])
    flags.unparse_flags()
    assert flags(["program", "--name=x"]) == ["program"]


def test_help_names_every_flag(flags):
    text = flags.get_help()
    assert "--[no]train: whether to" in text and "(default: '0.5')" in text


PROGRAM = """
import tfray as tf
tf.app.flags.DEFINE_integer("steps", 3, "How many.")
FLAGS = tf.app.flags.FLAGS
def main(argv):
    print(argv[1:], FLAGS.steps)
    return 5
if __name__ == "__main__":
    tf.app.run()
"""


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        (["--steps=4", "x", "--other"], 5, "['x', '--other'] 4", ""),
        (["--steps=x"], 1, "", "--steps=x"),
        (["--help"], 1, "--steps: How many.", ""),
    ],
)
def test_app_run(tmp_path, arguments, code, out, err):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert found.returncode == code, found.stderr
    assert out in found.stdout and err in found.stderr and "Traceback" not in found.stderr


# -- logging -------------------------------------------------------------------------------------------


@pytest.fixture
def verbosity():
    before = tf.logging.get_verbosity()
    yield
    tf.logging.set_verbosity(before)


def test_messages_go_to_the_logger_by_level(verbosity, caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.debug("hidden")
    tf.logging.info("step %d", 3)
    tf.logging.warn("careful")
    tf.logging.fatal("%s", "bad")
    tf.logging.log(tf.logging.ERROR, "code %d", 7)
    tf.logging.vlog(5, "hidden")
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("INFO", "step 3"),
        ("WARNING", "careful"),
        ("CRITICAL", "bad"),
        ("ERROR", "code 7"),
    ]
    assert {record.filename for record in caplog.records} == {"test_program.py"}


def test_messages_every_so_often(verbosity, caplog):
    for _ in range(5):
        tf.logging.log_every_n(tf.logging.ERROR, "every", 3)
        tf.logging.log_first_n(tf.logging.ERROR, "first", 2)
        tf.logging.log_if(tf.logging.ERROR, "never", False)
    assert [record.getMessage() for record in caplog.records] == ["every", "first", "first", "every"]


def test_levels_have_the_values_of_python():
    assert (tf.logging.DEBUG, tf.logging.INFO, tf.logging.WARN, tf.logging.ERROR) == (10, 20, 30, 40)
    assert tf.logging.get_logger() is logging.getLogger("tfray")


def test_without_configuration_messages_go_to_stderr():
    code = "import tfray as tf; tf.logging.set_verbosity('INFO'); tf.logging.info('hello'); tf.logging.debug('no')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert found.stderr == "INFO:tfray:hello\n"


# -- sessions ------------------------------------------------------------------------------------------


def test_an_interactive_session_is_the_default():
    session = tf.InteractiveSession(config=tf.ConfigProto(allow_soft_placement=True))
    assert tf.constant(3).eval() == 3
    session.close()
    assert tf.get_default_session() is None


# -- compat --------------------------------------------------------------------------------------------


def test_v1_is_the_module():
    import tfray.compat.v1 as v1
    from tfray.compat import v1 as again

    assert v1 is tf and again is tf and tf.compat.v1 is tf
    tf.disable_v2_behavior()
    assert not tf.executing_eagerly()
    with pytest.raises(tf.errors.UnimplementedError, match=r"tf\.Session"):
        tf.enable_eager_execution()


def test_text_and_bytes():
    assert tf.compat.as_bytes("ä") == "ä".encode() == tf.compat.as_bytes(b"\xc3\xa4")
    assert tf.compat.as_str("ä".encode()) == tf.compat.as_text("ä") == "ä"
    assert tf.compat.as_str_any(3) == "3" and tf.compat.as_str_any(b"x") == "x"
    with pytest.raises(TypeError):
        tf.compat.as_bytes(3)
    with pytest.raises(TypeError):
        tf.compat.as_text(np.float32(3))
