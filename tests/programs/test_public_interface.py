"""TensorFlow 1.15's public interface: each name is there, with the same parameters in the same order, or it is listed.

The list of what is not there yet holds exactly: a name on it that is there now is to be taken off.
"""

from __future__ import annotations

import inspect

import pytest

import tfray
from tests.support.public_interface import (
    NOT_YET,
    OTHERWISE,
    absent,
    different,
    is_there,
    listed,
    resolved,
    takes,
    with_owners,
)
from tfray.absent_names import RENAMED, reason
from tfray.cli.ops_command import missing_symbols, program_symbols

LISTED = set(NOT_YET.read_text().split())


def test_the_list_is_whole():
    names = listed()
    assert len(names) > 1900
    assert names["tf.matmul"] is not None and names["tf.matmul"][:2] == ["a", "b"] and names["tf.float32"] is None


def test_every_name_is_there_or_listed():
    names, exceptions = absent(), {name for name in LISTED if not name.endswith("()")}
    assert names - exceptions == set(), "these names have gone"
    assert exceptions - names == set(), "these names are there now: take them off tests/golden/not_there_yet.txt"


def test_parameters_are_tensorflows_or_listed():
    names, exceptions = different(), {name for name in LISTED if name.endswith("()")}
    assert names - exceptions == set(), "these have other parameters than in TensorFlow"
    assert exceptions - names == set(), "these are as in TensorFlow now: take them off tests/golden/not_there_yet.txt"


@pytest.mark.parametrize("name", OTHERWISE)
def test_differences_for_good_are_there(name):
    assert not takes(name, listed()[name] or [])


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("tf.ragged", "tf.SparseTensor"),
        ("tf.RaggedTensor", "tf.sequence_mask"),
        ("tf.linalg.LinearOperatorDiag", "tf.linalg"),
        ("tf.lite", "tf.saved_model"),
        ("tf.tpu.rewrite", "CPUs and GPUs"),
        ("tf.contrib.tpu.cross_replica_sum", "CPUs and GPUs"),
        ("tf.autograph", "tf.cond"),
        ("tf.contrib.eager", "tf.Session"),
        ("tf.contrib.cudnn_rnn.CudnnLSTMSaveable", "tf.train.Saver"),
        ("tf.contrib.data.LMDBDataset", "from_generator"),
        ("tf.contrib.estimator.DNNClassifierWithLayerAnnotations", "without annotations"),
        ("tf.contrib.learn.extract_dask_data", "pandas"),
        ("tf.contrib.gan.eval.run_inception", "classifier_score"),
        ("tf.contrib.boosted_trees", "scikit-learn"),
        ("tf.train.sdca_optimizer", "FtrlOptimizer"),
        ("tf.train.SdcaOptimizer", "FtrlOptimizer"),
        ("tf.contrib.linear_optimizer", "FtrlOptimizer"),
        ("tf.estimator.experimental.LinearSDCA", "FtrlOptimizer"),
        ("tf.contrib.factorization.WALSModel", "matrix_factorization"),
        ("tf.contrib.factorization.GMM", "KMeans"),
        ("tf.config.experimental_connect_to_host", "tf.train.Server"),
        ("tf.train.do_quantize_training_on_graphdef", "fake_quant"),
        ("tf.nondifferentiable_batch_function", "tf.train.batch"),
        ("tf.profiler.advise", "tf.profiler.profile"),
        ("tf.mul", "tf.multiply"),
        ("tf.select", "--tensorflow 0.12"),
    ],
)
def test_names_that_tfray_does_without_say_what_to_use(name, instead):
    with pytest.raises(AttributeError) as caught:
        resolved(name)
    assert instead in str(caught.value) and name in str(caught.value)


def test_names_that_programs_use_are_there_or_have_a_reason():
    """By the census of programs in `tfray/library/program_symbols.txt`. Of estimators there is all that they use."""
    missing = [name for name, _ in missing_symbols(tfray)]
    assert [name for name in missing if not any(map(reason, with_owners(name)))] == []
    assert sum(name.startswith("tf.estimator.") for name, _ in program_symbols()) >= 19
    assert [name for name in missing if "estimator" in name or name.startswith("tf.contrib.learn")] == []


def test_reasons_are_for_what_is_absent():
    there = [name for name in listed() if is_there(name) and not inspect.isclass(resolved(name.rpartition(".")[0]))]
    assert not [name for name in there if reason(name.removeprefix("tf."))]
    assert not [name for name in RENAMED if is_there(f"tf.{name}")]
    assert all(is_there(f"tf.{newer}") for newer in RENAMED.values())
