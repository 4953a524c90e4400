"""`tf.onnx`: graphs as files of ONNX, in both directions.

>>> tf.onnx.export(session, "model.onnx", {"images": images}, {"scores": scores})
>>> model = tf.onnx.load("model.onnx")
>>> model(images=batch)["scores"]

The package ``onnx`` (``pip install 'tfray[onnx]'``) is imported by the first call.
"""

from __future__ import annotations

import sys

from tfray.lazy_modules import publish
from tfray.onnx.from_onnx import load
from tfray.onnx.to_onnx import export

__all__ = ["export", "load"]

publish(sys.modules[__name__], "onnx")  # a module of it may be imported before `tf.onnx` is asked for
