"""Tensors by name in checkpoints of TensorFlow's format."""

from __future__ import annotations

import numpy as np
import pytest

import tfray as tf
from tfray.ops.system.tensor_files_ops import merge_v2_checkpoints, restore_v2, save_v2, sharded_filename

W = np.arange(12, dtype=np.float32).reshape(4, 3)


def run(fetch):
    with tf.Session() as session:
        return session.run(fetch)


def test_what_is_saved_is_restored(tmp_path):
    prefix = f"{tmp_path}/new/model"
    values = {"w": W, "n": np.int64(7), "s": np.array([b"a", b"bc"], object), "c": np.array([1 + 2j], np.complex64)}
    run(save_v2(prefix, list(values), [""] * 4, list(values.values())))
    kinds = [tf.float32, tf.int64, tf.string, tf.complex64]
    for found, wanted in zip(run(restore_v2(prefix, list(values), [""] * 4, kinds)), values.values(), strict=True):
        assert np.array_equal(found, wanted) and np.asarray(found).dtype == np.asarray(wanted).dtype
    reader = tf.train.load_checkpoint(prefix)
    assert reader.get_variable_to_shape_map() == {"w": [4, 3], "n": [], "s": [2], "c": [1]}


def test_parts_become_one_tensor_and_are_read_as_parts(tmp_path):
    base = f"{tmp_path}/model"
    shards = [sharded_filename(f"{base}_temp/part", i, 2) for i in range(2)]
    saved = [save_v2(shards[0], ["w"], ["4 3 0,1:0,3"], [W[:1]]), save_v2(shards[1], ["w"], ["4 3 1,3:-"], [W[1:]])]
    with tf.control_dependencies(saved):
        run(merge_v2_checkpoints(tf.stack(shards), base))
    assert not (tmp_path / "model_temp").exists()
    whole, part = run(restore_v2(base, ["w", "w"], ["", "4 3 2,2:1,1"], [tf.float32] * 2))
    assert np.array_equal(whole, W) and np.array_equal(part, W[2:4, 1:2])


def test_names_of_files_are_numbered():
    assert run(sharded_filename("model", 1, 12)) == b"model-00001-of-00012"


@pytest.mark.parametrize(
    ("build", "kind", "match"),
    [
        (lambda p: save_v2(p, ["a", "b"], ["", ""], [W]), "InvalidArgumentError", "2 names and 2 slices for 1"),
        (lambda p: save_v2(p, ["a"], ["4 3 0,2:-"], [W]), "InvalidArgumentError", r"part of shape \[2, 3\]"),
        (lambda p: save_v2(p, ["a"], ["four"], [W]), "InvalidArgumentError", "no shape and slice"),
        (lambda p: save_v2("", ["a"], [""], [W]), "InvalidArgumentError", "prefix"),
        (lambda p: restore_v2(p, ["a"], [""], [tf.float32]), "NotFoundError", "no checkpoint"),
        (lambda p: merge_v2_checkpoints(["elsewhere"], p), "InvalidArgumentError", "its path begins otherwise"),
        (lambda p: merge_v2_checkpoints([f"{p}/../x"], p), "InvalidArgumentError", "its path begins otherwise"),
    ],
)
def test_what_does_not_fit_is_refused(build, kind, match, tmp_path):
    with pytest.raises(getattr(tf.errors, kind), match=match):
        run(build(f"{tmp_path}/model"))


def test_a_tensor_of_another_dtype_or_name_is_refused(tmp_path):
    run(save_v2(f"{tmp_path}/model", ["w"], [""], [W]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="'w' as float32, not as int32"):
        run(restore_v2(f"{tmp_path}/model", ["w"], [""], [tf.int32]))
    with pytest.raises(tf.errors.NotFoundError, match="v"):
        run(restore_v2(f"{tmp_path}/model", ["v"], [""], [tf.float32]))
