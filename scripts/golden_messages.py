"""Writes tests/golden/messages/: TensorFlow's messages of graphs as bytes, and which fields they have.

    python scripts/golden_messages.py

The interpreter needs tensorflow 2.21.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from tensorflow.core.framework import variable_pb2
from tensorflow.core.protobuf import control_flow_pb2, meta_graph_pb2, queue_runner_pb2, saved_model_pb2

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "messages"


def fields(message: Any, seen: set[str]) -> Iterator[str]:
    """A line for each field of a kind of message, and of those within it: path in TensorFlow's names, number, kind."""
    if message.full_name in seen:
        return
    seen.add(message.full_name)
    for field in message.fields:
        entry = field.message_type and field.message_type.GetOptions().map_entry
        inner = field.message_type.fields_by_name["value"] if entry else field
        words = [message.full_name, field.name, str(field.number)]
        words += ["enum" if inner.enum_type else "message" if inner.message_type else str(inner.type)]
        words += ["map"] if entry else ["list"] if field.is_repeated else []
        words += [field.containing_oneof.name] if field.containing_oneof else []
        yield " ".join(words)
        if inner.message_type:
            yield from fields(inner.message_type, seen)


def meta_graph() -> Any:
    """A meta graph with variables, a loop, a branch, a queue runner, a saver and a signature."""
    with tf.Graph().as_default() as graph:
        tf.disable_control_flow_v2()
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        kernel = tf.get_variable("kernel", initializer=[[1.0], [2.0]], use_resource=True)
        bias = tf.get_variable("bias", initializer=[0.5], use_resource=False)
        y = tf.matmul(x, kernel) + bias
        turned = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), [0, y], shape_invariants=None)[1]
        tf.cond(tf.reduce_sum(y) > 0, lambda: turned, lambda: y, name="chosen")
        queue = tf.FIFOQueue(3, tf.string)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue("a")]))
        tf.add_to_collection("numbers", 7)
        tf.add_to_collection("fractions", 0.5)
        saver = tf.train.Saver()
        return tf.train.export_meta_graph(saver_def=saver.as_saver_def(), graph=graph)


def saved_model() -> Any:
    """A model of TensorFlow 2: objects and functions."""
    import tempfile

    import tensorflow as tf2

    class Model(tf2.Module):
        def __init__(self) -> None:
            self.scale = tf2.Variable(2.0, name="scale")

        @tf2.function(input_signature=[tf2.TensorSpec([None], tf2.float32, name="x")])
        def __call__(self, x: Any) -> Any:
            return {"y": x * self.scale}

    with tempfile.TemporaryDirectory() as folder:
        tf2.saved_model.save(Model(), folder)
        model = saved_model_pb2.SavedModel.FromString((Path(folder) / "saved_model.pb").read_bytes())
    return model


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    seen: set[str] = set()
    kinds = (
        saved_model_pb2.SavedModel,
        variable_pb2.VariableDef,
        queue_runner_pb2.QueueRunnerDef,
        control_flow_pb2.CondContextDef,
    )
    lines = [line for kind in kinds for line in fields(kind.DESCRIPTOR, seen)]
    (FOLDER / "fields.txt").write_text("\n".join(lines) + "\n")
    model = saved_model()
    meta = meta_graph()
    assert isinstance(meta, meta_graph_pb2.MetaGraphDef)
    for each in (meta, *model.meta_graphs):
        each.meta_info_def.ClearField("stripped_op_list")
    for name, message in {"meta_graph": meta, "saved_model": model}.items():
        (FOLDER / f"{name}.pb").write_bytes(message.SerializeToString(deterministic=True))
        (FOLDER / f"{name}.pbtxt").write_text(text_format.MessageToString(message))


if __name__ == "__main__":
    main()
