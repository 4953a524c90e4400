"""`tfray run-program` and `python -m tfray`: a program runs as ``python`` runs it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support import ROOT
from tests.support.processes import PATIENCE_S
from tfray.programs import tensorflow_modules
from tfray.programs.missing_symbols import missing_symbols

PROGRAM = """\
import os, sys
import tensorflow as tf
from inner.helper import helped

tf.app.flags.DEFINE_integer("steps", 3, "Steps.")
FLAGS = tf.app.flags.FLAGS

def main(argv):
    print(tf.__version__, argv[1:], sys.argv[1:], os.path.basename(sys.argv[0]), sys.path[0] == os.path.dirname(
        os.path.abspath(__file__)), FLAGS.steps, helped(), sys.modules["__main__"].main is main)
    with tf.Session() as session:
        print(session.run(tf.constant(1) + FLAGS.steps), len(session.list_devices()))

if __name__ == "__main__":
    tf.app.run()
"""
HELPER = "import tensorflow as tf\n\ndef helped():\n    return tf.__name__\n"


@pytest.fixture
def program(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "__init__.py").write_text("")
    (tmp_path / "inner" / "helper.py").write_text(HELPER)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run(*arguments, cwd=None, command=("-m", "tfray"), **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    environment.pop("PYTHONWARNINGS", None)
    return subprocess.run(
        [sys.executable, *command, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


EXPECTED = "1.15.5 ['rest'] ['--steps=4', 'rest'] program.py True 4 tensorflow True\n5 {}\n"


@pytest.mark.parametrize("command", [("-m", "tfray"), ("-m", "tfray", "-m"), ("-m", "tfray.cli", "run-program")])
def test_a_program_runs_as_it_is(program, command):
    name = "program" if command[-1] == "-m" and len(command) == 3 else program
    done = run(name, "--steps=4", "rest", cwd=program.parent, command=command)
    assert (done.stdout, done.returncode) == (EXPECTED.format(1), 0), done.stderr


def test_as_many_devices_as_asked_for(program):
    done = run("--local-devices", 3, program, "--steps=4", "rest")
    assert (done.stdout, done.returncode) == (EXPECTED.format(3), 0), done.stderr


SAVING = """\
import os
import tensorflow as tf
v = tf.get_variable("v", [3])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(sorted(os.listdir(os.path.dirname(tf.train.Saver().save(session, "saved/model", 7)))))
"""


def test_checkpoints_have_the_names_of_tensorflows_files(tmp_path):
    (tmp_path / "saving.py").write_text(SAVING)
    done = run("saving.py", cwd=tmp_path)
    names = [f"model-7.{ending}" for ending in ("data-00000-of-00001", "index", "meta")]
    assert (done.stdout, done.returncode) == (f"{['checkpoint', *names]}\n", 0), done.stderr


ENDINGS = {
    "raise SystemExit(7)": (7, ""),
    "import sys; sys.exit('told')": (1, "told\n"),
    "raise KeyboardInterrupt": (130, "KeyboardInterrupt\n"),
    "def": (1, "SyntaxError: invalid syntax\n"),
    "import tensorflow as tf\ntf.nothing_like_it": (1, "AttributeError: tf.nothing_like_it does not exist"),
    "import os, tensorflow as tf\ntf.errors.NotFoundError(None, None, 'x') if 0 else os.stat('nowhere')": (
        1,
        "FileNotFound",
    ),
    "1/0": (1, 'Traceback (most recent call last):\n  File "{path}", line 1, in <module>\n    1/0\n'),
}


QUICK = ("import sys; sys.exit('told')", "raise KeyboardInterrupt", "1/0")
"""Of a kind each: an exit, an interrupt, an error."""


@pytest.mark.parametrize(
    "source", [pytest.param(source, marks=() if source in QUICK else pytest.mark.slow) for source in ENDINGS]
)
def test_endings_are_pythons(tmp_path, source):
    path = tmp_path / "ending.py"
    path.write_text(source)
    done = run(path)
    code, said = ENDINGS[source]
    assert done.returncode == code and said.format(path=path) in done.stderr
    assert "run_program" not in done.stderr and "click" not in done.stderr


def test_what_is_not_there_is_told(tmp_path):
    done = run("nowhere.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "tfray: there is no file nowhere.py\n")
    done = run("-m", "nowhere", cwd=tmp_path)
    assert done.returncode == 2 and "there is no module nowhere" in done.stderr
    done = run("--tensorflow", "2.1", "x.py", cwd=tmp_path)
    assert done.returncode == 2 and "1.15" in done.stderr


def test_a_package_runs_by_its_main(tmp_path):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys, tensorflow as tf\nfrom . import other\nprint(__package__, __name__, sys.argv[1:], other.VERSION)\n"
    )
    (package / "other.py").write_text("import tensorflow as tf\nVERSION = tf.VERSION\n")
    done = run("-m", "pack", "a", "--b", cwd=tmp_path)
    assert done.stdout == "pack __main__ ['a', '--b'] 1.15.5\n", done.stderr


def test_tfray_comes_before_a_tensorflow_that_is_there(tmp_path):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise RuntimeError('the other one')")
    path = tmp_path / "program.py"
    path.write_text("import tensorflow.contrib.slim as slim, tensorflow as tf\nprint(tf.__version__, slim.__name__)")
    done = run(path)
    assert done.stdout == "1.15.5 tensorflow.contrib.slim\n", done.stderr


def test_commands_are_still_there():
    done = run("--version")
    assert done.returncode == 0 and "tfray" in done.stdout
    done = run("ops", "--json")
    assert done.returncode == 0 and "MatMul" in done.stdout
    done = run("nonsense")
    assert done.returncode == 2 and "No such command" in done.stderr


def test_an_older_version(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import tensorflow as tf\nprint(tf.__version__, tf.concat(1, [[[1]], [[2]]]).shape, tf.mul.__name__)\n"
    )
    for done in (run("--tensorflow", "0.12", path), run(path, TFRAY_TENSORFLOW="0.12")):
        assert done.stdout == "0.12.1 (1, 2) multiply\n", done.stderr


# -- what is missing -----------------------------------------------------------------------------------------

MISSING = """\
import tensorflow as tf
import tensorflow.contrib.slim as slim, tensorflow.python.ops.nonsense
from tensorflow.python.ops import array_ops, no_such_ops
from tensorflow.contrib.layers import xavier_initializer, no_such_initializer as other
import inner.helper
from inner import more
layers = tf.contrib.layers
layers.no_such_layer
tf.nn.relu(tf.nn.no_such_function(1))
tf.GraphKeys.NO_SUCH_KEY, tf.GraphKeys.LOSSES, tf.train.Example.FromString
try:
    tf.no_such_name_that_is_caught
    from tensorflow.nonsense import caught
except (ImportError, AttributeError):
    pass
slim.no_such_slim_function
array_ops.concat, array_ops.no_such_op
tf.flags.FLAGS.no_such_flag
def function(layers_):
    return tf.mul(layers_.whatever, 2)
"""


def test_missing_symbols_are_found_in_sources(program, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    program.write_text(MISSING)
    (program.parent / "inner" / "more.py").write_text("from .helper import helped\nfrom . import deeper\n")
    (program.parent / "inner" / "deeper.py").write_text("import tensorflow.compat.v1 as tf1\ntf1.no_such_thing()\n")
    (program.parent / "inner" / "unused.py").write_text("import tensorflow as tf\ntf.never_imported\n")
    tensorflow_modules.install()
    try:
        found = missing_symbols(str(program), [str(program.parent)])
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
            del sys.modules[name]
    assert {(os.path.basename(each.file), each.line, each.name) for each in found} == {
        ("program.py", 2, "tf.python.ops.nonsense"),
        ("program.py", 3, "tf.python.ops.no_such_ops"),
        ("program.py", 4, "tf.contrib.layers.no_such_initializer"),
        ("program.py", 8, "tf.contrib.layers.no_such_layer"),
        ("program.py", 9, "tf.nn.no_such_function"),
        ("program.py", 10, "tf.GraphKeys.NO_SUCH_KEY"),
        ("program.py", 16, "tf.contrib.slim.no_such_slim_function"),
        ("program.py", 17, "tf.python.ops.array_ops.no_such_op"),
        ("program.py", 20, "tf.mul"),
        ("deeper.py", 2, "tf.no_such_thing"),
    }


def test_what_a_program_sets_itself_is_not_missing(program):
    program.write_text("import tensorflow as tf\ntf.GraphKeys.MINE = 'mine'\nprint(tf.GraphKeys.MINE)\n")
    done = run("--report-missing", program)
    assert done.stdout == "mine\n" and f"{program}:2" not in done.stderr


def test_missing_symbols_are_reported_before_the_program_runs(program):
    program.write_text("import tensorflow as tf\nprint('runs')\nif tf is None:\n    tf.mul(1, 2)\n")
    done = run("--report-missing", program)
    assert done.returncode == 0 and done.stdout == "runs\n"
    assert f"{program}:4: tf.mul does not exist" in done.stderr and "1 of the symbols" in done.stderr
    program.write_text("import tensorflow as tf\ntf.matmul\n")
    assert "every symbol that the program uses exists here" in run("--report-missing", program).stderr


def test_a_source_that_cannot_be_read_is_reported(program):
    (program.parent / "inner" / "helper.py").write_text("print 'Python 2'\n")
    done = run("--report-missing", program)
    assert "helper.py:1: cannot be read" in done.stderr and done.returncode == 1


FORMER = """\
import base64, collections, imp, inspect, os, threading, time
import numpy as np
import tensorflow as tf

class Case(tf.test.TestCase):
    def test_older_names(self):
        self.assertEquals(np.float(2), 2.0)
        self.assertItemsEqual(np.in1d([1, 2], [2]), [False, True])

print(isinstance([], collections.Iterable), inspect.getargspec(lambda a, b=2, *c, **d: 0).defaults, os.errno.ENOENT)
print(base64.encodestring(b"a"), threading.current_thread().isAlive(), time.clock() >= 0)
print(np.product([2, 3]), np.asscalar(np.array([4])), np.cast["int32"]([1.5]), np.trapz([1.0, 2.0]))
print(np.zeros(1, np.bool).dtype, np.asfarray([1]), np.mat("1 2").shape, np.msort([2, 1]), np.NINF)
print(np.lib.pad([1], 1, "constant"), np.AxisError.__name__, imp.load_source("beside", "beside.py").value)
pairs = np.array(list(zip(np.zeros((4, 3)), np.ones((4, 2)))))
print(pairs.shape, pairs.dtype, pairs[1, 1], np.asarray([[1, 2], [3]]))
for refused in (lambda: np.array([[1, 2], [3]], np.float32), lambda: tf.constant([[1, 2], [3]])):
    try:
        refused()
    except ValueError:
        print("refused")
tf.test.main()
"""


def test_a_program_finds_names_that_python_and_numpy_have_lost(tmp_path):
    (tmp_path / "program.py").write_text(FORMER)
    (tmp_path / "beside.py").write_text("value = 5\n")
    done = run("program.py", cwd=tmp_path)
    assert done.returncode == 0 and "OK" in done.stderr, done.stderr
    assert done.stdout.splitlines() == [
        "True (2,) 2",
        "b'YQ==\\n' True True",
        "6 4 [1] 1.5",
        "bool [1.] (1, 2) [1 2] -inf",
        "[0 1 0] AxisError 5",
        "(4, 2) object [1. 1.] [list([1, 2]) list([3])]",
        "refused",
        "refused",
    ]


QUEUES = """\
import tensorflow as tf
reader = tf.TFRecordReader()
key, record = reader.read(tf.train.string_input_producer(["records"]))
tf.train.export_meta_graph("model.meta")
written = open("model.meta", "rb").read()
tf.reset_default_graph()
tf.train.import_meta_graph("model.meta")
print(tf.get_default_graph().get_operation_by_name(key.op.name).type)
"""


def test_a_program_may_load_graphs_that_use_files(tmp_path):
    (tmp_path / "program.py").write_text(QUEUES)
    command = ("-m", "tfray")
    assert "--allow files`" in run("program.py", command=command, cwd=tmp_path).stderr
    assert run("program.py", command=(*command, "--allow", "files"), cwd=tmp_path).stdout == "ReaderRead\n"
    assert "python" in run("program.py", command=(*command, "--allow", "all"), cwd=tmp_path).stderr


LOGGING = """\
import logging, sys
logging.getLogger("tensorflow").setLevel(logging.INFO)
import tensorflow as tf
tf.logging.info("before")
tf.get_logger().handlers = [logging.StreamHandler(sys.stdout)]
step = tf.train.get_or_create_global_step().assign_add(1)
with tf.train.MonitoredTrainingSession(checkpoint_dir="folder") as session:
    session.run(step)
logging.getLogger("tensorflow").setLevel(logging.ERROR)
tf.logging.info("not told")
"""


def test_messages_come_from_tensorflows_logger(tmp_path):
    (tmp_path / "program.py").write_text(LOGGING)
    done = run("program.py", cwd=tmp_path)
    assert done.stderr == "INFO:tensorflow:before\n"
    saved = [f"Saving checkpoints for {step} into folder/model.ckpt." for step in (0, 1)]  # as of TensorFlow 1.15
    assert [line for line in done.stdout.splitlines() if "Saving" in line] == saved
    assert "not told" not in done.stdout


def test_other_programs_do_not_find_them(tmp_path):
    """They are for programs that run as they are: what imports tfray sees its own Python and NumPy."""
    (tmp_path / "program.py").write_text("import collections, numpy, tfray\nprint(hasattr(collections, 'Iterable'))\n")
    assert run(tmp_path / "program.py", command=()).stdout == "False\n"
