"""Without the package `onnx`, and without a use of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tfray as tf
from tests.support import ROOT
from tests.support.processes import PATIENCE_S
from tfray.onnx import onnx_types


def test_the_namespace_imports_onnx_when_it_is_used():
    program = "import sys, tfray as tf; tf.onnx.export; tf.onnx.load; print('onnx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout == "False\n", done.stderr


def test_a_call_without_the_package_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    onnx_types.onnx_package.cache_clear()
    (tmp_path / "model.onnx").write_bytes(b"")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        for call in (
            lambda: tf.onnx.load(tmp_path / "model.onnx"),
            lambda: tf.onnx.export(session, tmp_path / "written.onnx", [x], [x + 1]),
        ):
            with pytest.raises(tf.errors.NotFoundError, match=r"pip install 'tfray\[onnx\]'"):
                call()
