"""The names of TensorFlow 0.12 that 1.0 took away or changed, with their arguments and the order of these."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import tfray as tf
from tfray.absent_names import RENAMED
from tfray.library.rnn import rnn_cells
from tfray.programs.cell_internals import linear


def concat(concat_dim: Any, values: Any, name: str = "concat") -> Any:
    """`tf.concat` with the axis first."""
    return tf.concat(values, concat_dim, name=name)


def split(split_dim: Any, num_split: int, value: Any, name: str = "split") -> Any:
    """`tf.split` into equal parts, with the axis first."""
    return tf.split(value, num_split, split_dim, name=name)


def sparse_concat(concat_dim: Any, sp_inputs: Any, name: str | None = None, expand_nonconcat_dim: bool = False) -> Any:
    """`tf.sparse_concat`, whose axis is called `concat_dim`."""
    return tf.sparse_concat(concat_dim, sp_inputs, name, expand_nonconcat_dim)


def sparse_split(split_dim: int, num_split: int, sp_input: Any, name: str | None = None) -> Any:
    """`tf.sparse_split` with the axis first."""
    return tf.sparse_split(sp_input=sp_input, num_split=num_split, axis=split_dim, name=name)


def reverse(tensor: Any, dims: Any, name: str | None = None) -> Any:
    """`tf.reverse` along the axes for which `dims`, a bool for each axis, is True."""
    return tf.reverse(tensor, [axis for axis, turned in enumerate(dims) if turned], name=name)


def unpack(value: Any, num: int | None = None, axis: int = 0, name: str = "unpack") -> Any:
    """`tf.unstack`."""
    return tf.unstack(value, num, axis, name=name)


def pack(values: Any, axis: int = 0, name: str = "pack") -> Any:
    """`tf.stack`."""
    return tf.stack(values, axis, name=name)


def batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Any:
    """`tf.matmul` of batches of matrices, ``[..., rows, inner]`` and ``[..., inner, columns]``."""
    return tf.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def select(condition: Any, t: Any, e: Any, name: str | None = None) -> Any:
    """`tf.where` with three tensors."""
    return tf.where(condition, t, e, name=name)


def softmax_cross_entropy_with_logits(logits: Any, labels: Any, dim: int = -1, name: str | None = None) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits` with the logits first."""
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def sparse_softmax_cross_entropy_with_logits(logits: Any, labels: Any, name: str | None = None) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` with the logits first."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: str | None = None) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits` with the logits first."""
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def weighted_cross_entropy_with_logits(logits: Any, targets: Any, pos_weight: Any, name: str | None = None) -> Any:
    """`tf.nn.weighted_cross_entropy_with_logits` with the logits first."""
    return tf.nn.weighted_cross_entropy_with_logits(targets, logits, pos_weight, name=name)


def nce_loss(
    weights: Any, biases: Any, inputs: Any, labels: Any, num_sampled: int, num_classes: int, *args: Any, **kwargs: Any
) -> Any:
    """`tf.nn.nce_loss` with the inputs before the labels."""
    return tf.nn.nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, *args, **kwargs)


def sampled_softmax_loss(
    weights: Any, biases: Any, inputs: Any, labels: Any, num_sampled: int, num_classes: int, *args: Any, **kwargs: Any
) -> Any:
    """`tf.nn.sampled_softmax_loss` with the inputs before the labels."""
    return tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, *args, **kwargs)


def resize_images(
    images: Any,
    size: Any,
    new_width: Any = None,
    method: Any = tf.image.ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Any:
    """`tf.image.resize_images`, also with a height and a width in place of a size, as 0.11 has it.

    With a size, the third argument is the method.
    """
    if isinstance(size, (int, tf.Tensor)) and tf.convert_to_tensor(size).shape.rank == 0:
        return tf.image.resize_images(images, tf.stack([size, new_width]), method, align_corners)
    return tf.image.resize_images(images, size, method if new_width is None else new_width, align_corners)


class BasicRNNCell(rnn_cells.BasicRNNCell):
    """`tf.nn.rnn_cell.BasicRNNCell`; `input_size` has no effect."""

    def __init__(self, num_units: int, input_size: Any = None, activation: Any = tf.tanh) -> None:
        super().__init__(num_units, activation)


class GRUCell(rnn_cells.GRUCell):
    """`tf.nn.rnn_cell.GRUCell`; `input_size` has no effect."""

    def __init__(self, num_units: int, input_size: Any = None, activation: Any = tf.tanh) -> None:
        super().__init__(num_units, activation)


class BasicLSTMCell(rnn_cells.BasicLSTMCell):
    """`tf.nn.rnn_cell.BasicLSTMCell`; `input_size` has no effect."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        state_is_tuple: bool = True,
        activation: Any = tf.tanh,
    ) -> None:
        super().__init__(num_units, forget_bias, state_is_tuple, activation)


class LSTMCell(rnn_cells.LSTMCell):
    """`tf.nn.rnn_cell.LSTMCell`; `input_size` has no effect."""

    def __init__(
        self,
        num_units: int,
        input_size: Any = None,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = tf.tanh,
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes=use_peepholes,
            cell_clip=cell_clip,
            initializer=initializer,
            num_proj=num_proj,
            proj_clip=proj_clip,
            num_unit_shards=num_unit_shards,
            num_proj_shards=num_proj_shards,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
        )


def older_names() -> Mapping[str, Any]:
    """What programs of TensorFlow 0.12 find under each path, and not in 1.x, or with other arguments."""
    found = {path: _resolved(newer) for path, newer in RENAMED.items()}
    own = (batch_matmul, concat, pack, reverse, select, sparse_concat, sparse_split, split, unpack)
    found.update((function.__name__, function) for function in own)
    found.update(
        (f"nn.{function.__name__}", function)
        for function in (
            nce_loss,
            sampled_softmax_loss,
            sigmoid_cross_entropy_with_logits,
            softmax_cross_entropy_with_logits,
            sparse_softmax_cross_entropy_with_logits,
            weighted_cross_entropy_with_logits,
        )
    )
    for name, value in list(found.items()):
        if "." not in name:  # where they are defined
            found[f"python.ops.array_ops.{name}"] = found[f"python.ops.math_ops.{name}"] = value
    found["python.ops.rnn.rnn"] = found["python.ops.rnn.static_rnn"] = tf.nn.static_rnn
    found["python.ops.rnn.bidirectional_rnn"] = tf.nn.static_bidirectional_rnn
    found["python.ops.rnn.state_saving_rnn"] = tf.nn.static_state_saving_rnn
    for cell in (BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell):
        found[f"nn.rnn_cell.{cell.__name__}"] = found[f"python.ops.rnn_cell.{cell.__name__}"] = cell
    found["nn.rnn_cell._linear"] = linear
    found["image.resize_images"] = resize_images
    for name in ("audio_summary", "histogram_summary", "image_summary", "merge_all_summaries", "merge_summary"):
        found[name] = getattr(tf, name)
    return found


def _resolved(path: str) -> Any:
    value: Any = tf
    for name in path.split("."):
        value = getattr(value, name)
    assert not isinstance(value, ModuleType)
    return value
