"""`import tensorflow` finds tfray, by all the paths that programs use."""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import pydoc
import subprocess
import sys
from types import ModuleType
from unittest import mock

import numpy as np
import pytest

import tfray
from tests.support import ROOT
from tests.support.processes import PATIENCE_S
from tfray.absent_names import RENAMED, reason
from tfray.errors import InvalidArgumentError
from tfray.programs import tensorflow_modules
from tfray.programs.older_names import older_names

NOT_YET = set((ROOT / "tests" / "golden" / "not_there_yet.txt").read_text().split())


@pytest.fixture
def as_tensorflow(monkeypatch):
    """Lets `import tensorflow` find tfray, in the version that the test asks for, until the test is over."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delenv(tensorflow_modules.VARIABLE, raising=False)
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "tensorflow"}
    yield tensorflow_modules.install
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.fixture
def tf(as_tensorflow):
    return as_tensorflow()


def test_the_package_is_tensorflow_1(tf):
    import tensorflow

    assert tensorflow is tf and tf.__name__ == "tensorflow"
    assert tf.__version__ == tf.VERSION == tf.version.VERSION == "1.15.5"
    assert tf.__git_version__ == tf.version.GIT_VERSION == "v1.15.5"
    assert tf.compat.v2.__version__ == tf.compat.v2.version.VERSION == "1.15.5"
    assert tf.__file__.endswith("__init__.py")
    assert tf.matmul is tfray.matmul and tf.nn.relu is tfray.nn.relu
    assert {"matmul", "__version__"} <= set(dir(tf))
    assert tfray.__version__ != tf.__version__
    assert not hasattr(tf, "options") and not hasattr(tf, "session"), "modules of tfray are no names of TensorFlow"


IMPORTS = """
import tensorflow.contrib.slim as slim
import tensorflow.compat.v1 as tf1
import tensorflow.contrib.layers
import tensorflow.nn.rnn_cell
import tensorflow.python.keras.layers
import tensorflow.python.ops.rnn_cell_impl as cells
from tensorflow import keras, nn, flags
from tensorflow.compat.v1 import flags as flags1
from tensorflow.compat.v1.nn import rnn_cell as cell1
from tensorflow.contrib import layers, learn, rnn, seq2seq
from tensorflow.contrib.layers import xavier_initializer
from tensorflow.contrib.layers.python.layers import initializers, regularizers
from tensorflow.contrib.rnn.python.ops.core_rnn_cell import _linear, _Linear
from tensorflow.contrib.rnn.python.ops.core_rnn_cell_impl import _linear, _RNNCell, BasicLSTMCell
from tensorflow.contrib.rnn.python.ops import core_rnn, core_rnn_cell
from tensorflow.contrib.learn.python.learn.estimators.head import _multi_class_head, _multi_head, _regression_head
from tensorflow.python.framework.errors_impl import NotFoundError, OperatorNotAllowedInGraphError
from tensorflow.python.ops.clustering_ops import KMeans, nearest_neighbors
from tensorflow.python.ops.init_ops import convolutional_orthogonal_1d, convolutional_orthogonal_2d
from tensorflow.contrib.seq2seq.python.ops.attention_wrapper import BahdanauAttention, _BaseAttentionMechanism
from tensorflow.contrib.seq2seq.python.ops.attention_wrapper import _bahdanau_score, _compute_attention, _luong_score
from tensorflow.contrib.seq2seq.python.ops.attention_wrapper import _maybe_mask_score, _prepare_memory
from tensorflow.contrib.seq2seq.python.ops.helper import _unstack_ta
from tensorflow.contrib.legacy_seq2seq.python.ops.seq2seq import _extract_argmax_and_embed
from tensorflow.contrib.tensor_forest.client import eval_metrics, random_forest
from tensorflow.contrib.tensor_forest.python import tensor_forest
from tensorflow.contrib.tensorboard.plugins import projector
from tensorflow.contrib.tpu.python.tpu import bfloat16, tpu_config, tpu_estimator, tpu_optimizer
from tensorflow.contrib.tpu.python.tpu.tpu_estimator import TPUEstimator
from tensorflow.contrib.framework.python.ops.variables import VariableDeviceChooser, local_variable
from tensorflow.contrib.layers.python.layers.optimizers import adaptive_clipping_fn
from tensorflow.contrib.losses.python.metric_learning import metric_loss_ops
from tensorflow.contrib.training.python.training import sampling_ops, sequence_queueing_state_saver
from tensorflow.contrib.training.python.training.sampling_ops import stratified_sample
from tensorflow.python.training.slot_creator import create_slot, create_zeros_slot
from tensorflow.contrib.training.python.training.hparam import HParams
from tensorflow.core.example import example_pb2, feature_pb2
from tensorflow.core.framework import graph_pb2, summary_pb2, types_pb2
from tensorflow.core.framework.summary_pb2 import Summary
from tensorflow.core.protobuf import config_pb2, saver_pb2
from tensorflow.core.util.event_pb2 import Event
from tensorflow.examples.tutorials.mnist import input_data, mnist
from tensorflow.examples.tutorials.mnist.input_data import read_data_sets
from tensorflow.keras.layers import Dense
from tensorflow.python.client import device_lib, session, timeline
from tensorflow.python.client.device_lib import list_local_devices
from tensorflow.python.estimator import estimator, export, exporter, keras, model_fn, run_config, training
from tensorflow.python.estimator.canned import baseline, dnn, dnn_linear_combined, head, linear, parsing_utils
from tensorflow.python.estimator.canned.dnn import DNNClassifier
from tensorflow.python.estimator.export.export import ServingInputReceiver, build_raw_serving_input_receiver_fn
from tensorflow.python.estimator.export.export_output import PredictOutput
from tensorflow.python.estimator.inputs.numpy_io import numpy_input_fn
from tensorflow.python.estimator.keras import model_to_estimator
from tensorflow.python.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorflow.python.estimator.run_config import RunConfig, TaskType
from tensorflow.python.estimator.training import EvalSpec, TrainSpec, train_and_evaluate
from tensorflow.python.framework import constant_op, dtypes, errors, ops, tensor_shape, tensor_util, test_util
from tensorflow.python.framework.ops import Tensor, convert_to_tensor
from tensorflow.python.layers import base, core
from tensorflow.python.lib.io import file_io, tf_record
from tensorflow.python.ops import array_ops, control_flow_ops, init_ops, math_ops, nn_ops, rnn as python_rnn
from tensorflow.python.ops import gen_random_ops, gen_sparse_ops, gen_state_ops, math_grad, nn_grad
from tensorflow.python.ops import resources, tensor_array_ops, variable_scope
from tensorflow.python.ops.rnn import _best_effort_input_batch_size, _infer_state_dtype, _rnn_step, _should_cache
from tensorflow.python.ops.rnn_cell_impl import _concat, _Linear, _zero_state_tensors, assert_like_rnncell
from tensorflow.python.training import training_ops
from tensorflow.python.framework.ops import colocate_with, get_name_scope, strip_name_scope
from tensorflow.python.layers.utils import conv_output_length, normalize_tuple, smart_constant_value
from tensorflow.python.training.checkpoint_state_pb2 import CheckpointState
from tensorflow.python.training.summary_io import SummaryWriter
from tensorflow.python.util.all_util import make_all, remove_undocumented
from tensorflow.python.keras.engine.base_layer import Layer, TensorFlowOpLayer
from tensorflow.python.keras.preprocessing.sequence import pad_sequences
from tensorflow.python.keras._impl.keras.layers import Dense
from tensorflow.keras.applications.vgg16 import VGG16, decode_predictions, preprocess_input
from tensorflow.keras.datasets.imdb import get_word_index, load_data
from tensorflow.keras.wrappers.scikit_learn import KerasClassifier, KerasRegressor
from tensorflow.python.keras.applications.resnet50 import ResNet50
from tensorflow.python.keras.backend_config import floatx, image_data_format
from tensorflow.python.keras.engine.input_layer import Input, InputLayer
from tensorflow.python.keras.engine.input_spec import InputSpec
from tensorflow.python.keras.optimizer_v2 import adam, gradient_descent, learning_rate_schedule
from tensorflow.python.keras.optimizer_v2.optimizer_v2 import OptimizerV2
from tensorflow.python.keras.saving import hdf5_format, model_config, save
from tensorflow.python.keras.utils.io_utils import HDF5Matrix
from tensorflow.python.keras.utils.vis_utils import model_to_dot, plot_model
from tensorflow.python.keras.wrappers.scikit_learn import KerasClassifier
from tensorflow.contrib.keras.python.keras.layers import Dense
from tensorflow.contrib import grid_rnn, mixed_precision, session_bundle
from tensorflow.contrib.data.python.ops.sliding import sliding_window_batch
from tensorflow.contrib.framework.python.ops.checkpoint_ops import load_embedding_initializer
from tensorflow.contrib.framework.python.ops.checkpoint_ops import load_linear_multiclass_bias_initializer
from tensorflow.contrib.learn.python.learn import evaluable, ops, run_config, trainable
from tensorflow.contrib.learn.python.learn.estimators import _sklearn, debug, tensor_signature
from tensorflow.contrib.learn.python.learn.learn_io import generator_io
from tensorflow.contrib.learn.python.learn.utils import gc
from tensorflow.contrib.layers.python.layers.embedding_ops import scattered_embedding_lookup_sparse
from tensorflow.contrib.slim.python.slim import summaries
from tensorflow.contrib.grid_rnn import Grid2LSTMCell
from tensorflow.contrib.grid_rnn.python.ops import grid_rnn_cell
from tensorflow.contrib.grid_rnn.python.ops.grid_rnn_cell import GridRNNCell
from tensorflow.contrib.image.python.ops.dense_image_warp import dense_image_warp
from tensorflow.contrib.keras.api.keras.models import Sequential
from tensorflow.contrib.keras.python.keras import backend, initializers, optimizers
from tensorflow.contrib.keras.python.keras.preprocessing.image import ImageDataGenerator
from tensorflow.contrib.learn.python.learn.estimators.prediction_key import PredictionKey
from tensorflow.contrib.learn.python.learn.learn_io.graph_io import read_batch_features
from tensorflow.contrib.mixed_precision.python.loss_scale_manager import FixedLossScaleManager
from tensorflow.contrib.training.python.training.resample import weighted_resample
from tensorflow.contrib.session_bundle import bundle_shim, exporter, gc, manifest_pb2, session_bundle
from tensorflow.contrib.session_bundle.exporter import Exporter
from tensorflow.contrib.layers.python.layers import encoders, rev_block_lib
from tensorflow.contrib.image.python.ops.image_ops import bipartite_match
from tensorflow.contrib.layers.python.layers.encoders import bow_encoder
from tensorflow.contrib.slim.nets import inception, resnet_v1, vgg
from tensorflow.contrib.slim.python.slim.nets.resnet_v1 import bottleneck, resnet_v1_block
from tensorflow.contrib.learn.python.learn import learn_runner, monitors
from tensorflow.contrib.learn.python.learn.utils import saved_model_export_utils
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.contrib import image, integrate, predictor, resampler, signal, stateless
import tensorflow.contrib.gan as tfgan
from tensorflow.contrib.gan.python.losses.python.losses_impl import wasserstein_generator_loss
from tensorflow.contrib.gan.python.namedtuples import GANTrainSteps
from tensorflow.contrib.gan.python.train import RunTrainOpsHook, gan_train
from tensorflow.contrib.integrate.python.ops.odes import odeint
from tensorflow.contrib.quantize.python.quantize_graph import create_eval_graph
from tensorflow.contrib.resampler.python.ops import resampler_ops
from tensorflow.contrib.tfprof import model_analyzer
from tensorflow.python.ops.gen_string_ops import regex_full_match, static_regex_replace
from tensorflow.python.ops.lookup_ops import IdTableWithHashBuckets, index_table_from_file
from tensorflow.python.ops.string_ops import string_split, string_split_v2
from tensorflow.python.ops.init_ops import Initializer
from tensorflow.python.platform import app, gfile, tf_logging
from tensorflow.python.platform.flags import FLAGS
from tensorflow.python.saved_model import builder, signature_constants, tag_constants
from tensorflow.python.summary.writer.writer import FileWriter
from tensorflow.python.training import moving_averages, optimizer, saver, training_util
from tensorflow.python.training.basic_session_run_hooks import LoggingTensorHook
from tensorflow.python.training.server_lib import ClusterSpec, Server
from tensorflow.python.util import compat, deprecation, nest, tf_export
from tensorflow.python.util import function_utils, tf_contextlib, tf_decorator, tf_inspect
from tensorflow.python.eager import context
from tensorflow.python.eager.def_function import function
from tensorflow.python.eager.function import defun
from tensorflow.python.ops.distributions.kullback_leibler import cross_entropy
from tensorflow.python.training.experimental.loss_scale import get
from tensorflow.python.ops.rnn import rnn_cell_impl
from tensorflow.python.ops.array_ops import math_ops, ops, tensor_shape
from tensorflow.contrib import cluster_resolver as contrib_cluster_resolver, distribute, eager, summary
from tensorflow.python.util.tf_export import tf_export as exported
from tensorflow.python.tpu.ops import tpu_ops
from tensorflow.contrib.tpu.python.tpu import tpu, tpu_config, tpu_context, tpu_feed
from tensorflow.python.ops.metrics_impl import _confusion_matrix_at_thresholds, metric_variable
from tensorflow.python.training.evaluation import _evaluate_once, _StopAfterNEvalsHook
from tensorflow.python.ops import summary_ops_v2
from tensorflow_estimator.python.estimator.head.regression_head import RegressionHead
from tensorflow.contrib.opt.python.training.sign_decay import get_linear_decay_fn
from tensorflow.contrib.image.python.ops.image_ops import rotate, translate
from tensorflow.contrib.kernel_methods.python.mappers.random_fourier_features import RandomFourierFeatureMapper
from tensorflow.contrib.distributions.python.ops.bijectors import Exp, FillTriangular
from tensorflow.python.feature_column.feature_column_lib import DenseFeatures, SequenceFeatures
from tensorflow.python.feature_column.serialization import deserialize_feature_column, serialize_feature_columns
from tensorflow.python.keras import keras_parameterized, testing_utils
from tensorflow.python.ops.distributions.bijector_test_util import assert_scalar_congruency
from tensorflow.python.keras.layers.local import LocallyConnected1D
from tensorflow.python.keras.layers.serialization import deserialize
from tensorflow.python.keras.constraints import maxnorm, nonneg
from tensorflow.python.keras.layers.convolutional import Deconv2D, Deconvolution3D
from tensorflow.python.keras.optimizer_v2.rmsprop import RMSProp
from tensorflow.python.keras.utils.conv_utils import conv_kernel_mask, convert_kernel, deconv_output_length
from tensorflow.python.keras.utils.multi_gpu_utils import multi_gpu_model
from tensorflow.python.keras.utils.tf_utils import convert_shapes, is_symbolic_tensor, shape_type_conversion
from tensorflow.python.distribute.distribution_strategy_context import get_replica_context, get_strategy, has_strategy
from tensorflow.python.distribute.reduce_util import ReduceOp
from tensorflow.python.framework.smart_cond import smart_case
from tensorflow.python.saved_model.tag_constants import EVAL
from tensorflow.python.estimator.estimator import _load_global_step_from_checkpoint_dir
from tensorflow.python.training.tracking.data_structures import List, Mapping, NoDependency
from tensorflow.contrib.distributions.python.ops.bijectors.masked_autoregressive import _gen_mask
from tensorflow.contrib.estimator.python.estimator.export import export_all_saved_models
from tensorflow.contrib.estimator.python.estimator.extenders import add_metrics, forward_features
from tensorflow.contrib.estimator.python.estimator.head import multi_class_head, regression_head
from tensorflow.contrib.estimator.python.estimator.multi_head import multi_head
from tensorflow.contrib.estimator.python.estimator.saved_model_estimator import SavedModelEstimator
from tensorflow.contrib.memory_stats.python.ops.memory_stats_ops import BytesInUse
from tensorflow_estimator.python.estimator.export.export import SupervisedInputReceiver
from tensorflow_estimator.python.estimator.export.export_output import EvalOutput, _SupervisedOutput
from tensorflow_estimator.python.estimator import model_fn
import tensorflow.compat.v2 as tf2
from tensorflow.python import ops, math_ops; tensor = ops.convert_to_tensor(1) + math_ops.add(1, 2)
from tensorflow.python.framework import ops; tensor = ops.convert_to_tensor(1, None, "one", as_ref=False)
from tensorflow.contrib.eager.python.tfe import run_test_in_graph_and_eager_modes
""".strip().splitlines()


@pytest.mark.parametrize("line", IMPORTS)
def test_lines_of_programs(tf, line):
    names: dict[str, object] = {}
    exec(line, names)
    assert all(value is not None for value in names.values())


def test_paths_lead_to_what_they_name(tf):
    import tensorflow.compat.v1 as v1
    from tensorflow.contrib.framework import nest as contrib_nest
    from tensorflow.python.framework import dtypes, ops, tensor_shape, tensor_util
    from tensorflow.python.ops import array_ops, math_ops
    from tensorflow.python.ops.rnn_cell import LSTMCell
    from tensorflow.python.platform import gfile
    from tensorflow.python.util import nest

    assert v1 is tf and v1.disable_v2_behavior is tfray.disable_v2_behavior and tf.compat.v1 is tf
    assert importlib.import_module("tensorflow.compat.v1.nn") is tf.nn
    assert array_ops.concat is tfray.concat and math_ops.multiply is tfray.multiply
    assert ops.get_default_graph is tfray.get_default_graph and dtypes.float32 is tfray.float32
    assert LSTMCell is tfray.nn.rnn_cell.LSTMCell and gfile.Exists is tfray.gfile.Exists
    assert nest.flatten is contrib_nest.flatten is tfray.contrib.framework.nest.flatten
    assert tensor_shape.vector(3).as_list() == [3] and tensor_shape.unknown_shape().ndims is None
    assert tensor_util.constant_value is tfray.contrib.util.constant_value
    assert tf.python.ops.array_ops is array_ops
    assert tf.compat.dimension_value(tfray.TensorShape([3])[0]) == 3
    assert tf.compat.dimension_at_index(tfray.TensorShape([3]), 0).value == 3


def test_modules_that_others_import_are_found_in_them(tf):
    from tensorflow.python.ops import rnn, rnn_cell_impl

    assert rnn.rnn_cell_impl is rnn_cell_impl and rnn.dtypes is tf.python.framework.dtypes
    assert not hasattr(tf.nn, "rnn_cell_impl")


def test_what_is_not_there_in_a_module_of_contrib_is_told_when_it_is_used(tf):
    from tensorflow.contrib import cluster_resolver

    with pytest.raises(AttributeError, match=r"tf\.contrib\.cluster_resolver\.TPUClusterResolver .* use CPUs and GPUs"):
        cluster_resolver.TPUClusterResolver("a")


def test_tensorflow_2s_names_mean_the_same_or_are_refused(tf):
    import tensorflow.compat.v2 as tf2

    assert tf.compat.v2 is tf.compat.v1.compat.v2 is tf2
    assert tf2.matmul is tf2.linalg.matmul is tfray.matmul and tf2.reduce_mean is tf2.math.reduce_mean
    assert tf2.keras.layers.Dense is tfray.keras.layers.Dense and tf2.io.gfile.exists is tfray.io.gfile.exists
    assert tf2.compat.v1.placeholder is tfray.placeholder and tf2.estimator.ModeKeys is tfray.estimator.ModeKeys
    assert tf2.nn.dropout is importlib.import_module("tfray.programs.newer_names").dropout_v2
    assert tf2.image.resize is importlib.import_module("tfray.programs.internals.images").resize_images_v2
    for name in ("placeholder", "contrib", "Session", "image.resize_with_pad", "random.all"):
        with pytest.raises(AttributeError, match=rf"tf\.compat\.v2\.{name} does not exist"):
            functools.reduce(getattr, name.split("."), tf2)


def test_modules_for_tpus_are_imported_and_refused_when_they_are_used(tf):
    from tensorflow.python.tpu import topology, tpu_function
    from tensorflow.python.tpu.ops import tpu_ops

    assert tpu_function.get_tpu_context().number_of_shards is None
    with pytest.raises(AttributeError, match="use CPUs and GPUs"):
        tpu_ops.cross_replica_sum([1.0])
    with pytest.raises(AttributeError, match="use CPUs and GPUs"):
        topology.Topology()


def test_modules_of_ragged_tensors_are_imported_and_refused_when_they_are_used(tf):
    from tensorflow.python.ops.ragged import ragged_factory_ops, ragged_tensor

    for name in (lambda: ragged_factory_ops.constant([[1], []]), lambda: ragged_tensor.RaggedTensor):
        with pytest.raises(AttributeError, match=r"use tf\.SparseTensor"):
            name()
    with pytest.raises(ImportError):
        from tensorflow.python.ops.ragged.ragged_tensor import RaggedTensor  # noqa: F401 (that is the test)
    assert tf.compat.v2.DeviceSpec is tf.python.framework.device_spec.DeviceSpecV2 is not tf.DeviceSpec


def test_the_package_of_estimators_is_that_of_tensorflow(tf):
    import tensorflow_estimator

    assert tensorflow_estimator.estimator.Estimator is tfray.estimator.Estimator
    assert (
        importlib.import_module("tensorflow_estimator.python.estimator.estimator").Estimator is tf.estimator.Estimator
    )


def test_nothing_is_converted(tf):
    function = tf.autograph.experimental.do_not_convert(len)
    assert function is len and tf.autograph.experimental.do_not_convert()(len) is len
    with pytest.raises(AttributeError, match="Python's statements are not rewritten"):
        tf.autograph.to_graph(len)


def test_what_rewrites_source_can_be_imported_and_not_used(tf):
    from tensorflow.python.autograph.converters import break_statements, continue_statements, return_statements
    from tensorflow.python.autograph.core import converter, naming
    from tensorflow.python.autograph.pyct import (
        anno,
        compiler,
        inspect_utils,
        parser,
        qual_names,
        templates,
        transformer,
    )
    from tensorflow.python.autograph.pyct.common_transformers import anf

    class Rewriting(transformer.Base):
        """Rewrites nothing."""

    for name in (break_statements, continue_statements, return_statements, converter, naming, anf, templates):
        with pytest.raises(AttributeError, match="Python's statements are not rewritten"):
            name.transform(None)
    for name in (anno, compiler, inspect_utils, parser, qual_names):
        with pytest.raises(AttributeError, match="Python's statements are not rewritten"):
            name.parse_entity(len)
    with pytest.raises(AttributeError, match="Python's statements are not rewritten"):
        Rewriting()


def test_pythons_own_questions_are_answered_at_once(tf, monkeypatch):
    """`inspect` asks all modules for their files for each frame of a stack."""
    module = importlib.import_module("tensorflow.python.util.tf_decorator")
    monkeypatch.setattr(tensorflow_modules, "absent", lambda *anything: pytest.fail("names like it are looked for"))
    assert not hasattr(module, "__file__")


def test_names_are_located_by_their_paths(tf):
    assert pydoc.locate("tensorflow.nn.rnn_cell.LSTMCell") is tf.nn.rnn_cell.LSTMCell
    assert pydoc.locate("tensorflow.identity") is tf.identity and pydoc.locate("tensorflow.nn.nonsense") is None
    with pytest.raises(ModuleNotFoundError, match=r"tf\.nonsense does not exist") as caught:
        importlib.import_module("tensorflow.nonsense")
    assert caught.value.name == "tensorflow.nonsense"


def test_functions_tell_their_arguments(tf):
    spec = inspect.getfullargspec(tf.while_loop)
    assert spec.args[:3] == ["cond", "body", "loop_vars"] and "maximum_iterations" in spec.args
    assert inspect.getfullargspec(tf.nn.conv2d).args[0] == "input"


def test_every_entry_of_the_table_resolves(tf):
    """Or its public name is on the list of what is not there yet, or among those that tfray does without."""
    table = tensorflow_modules.table()
    assert len(table) > 300
    wrong = []
    for path, entries in table.items():
        module = importlib.import_module(f"tensorflow.{path}")
        assert isinstance(module, ModuleType)
        for name, target in entries.items():
            absent = f"tf.{target}" in NOT_YET or reason(target)
            there = tensorflow_modules.TensorFlow.base(module._package, path) if name == "*" else hasattr(module, name)
            if bool(there) == bool(absent):
                wrong.append(f"{path} {name}={target} {'is there' if there else 'is not there'}")
    assert wrong == []


@pytest.mark.parametrize(
    ("path", "public", "names"),
    [
        (
            "python.ops.image_ops",
            "image",
            "adjust_contrast adjust_hue adjust_saturation combined_non_max_suppression draw_bounding_boxes "
            "extract_glimpse non_max_suppression resize_bicubic resize_bilinear resize_nearest_neighbor "
            "sample_distorted_bounding_box",
        ),
        ("python.ops.math_ops", "", "arg_max arg_min sparse_matmul"),
        ("python.ops.standard_ops", "", "TensorArray arg_max get_session_handle get_session_tensor sparse_matmul"),
        ("python.ops.distributions.distributions", "distributions", "Bernoulli Normal RegisterKL kl_divergence"),
        ("python.training.training", "train", "ClusterDef Example Feature Int64List SaverDef SequenceExample"),
    ],
)
def test_public_functions_hide_generated_ones(tf, path, public, names):
    """As TensorFlow 1.15 has them: its own functions of these names, not those of the operation types."""
    module, namespace = importlib.import_module(f"tensorflow.{path}"), getattr(tf, public) if public else tf
    for name in names.split():
        assert getattr(module, name) is getattr(namespace, name), name


@pytest.mark.parametrize(
    ("line", "asked", "there"),
    [
        ("import tensorflow.python.ops.array_opps", "tf.python.ops.array_opps", "array_ops"),
        ("from tensorflow.python.ops import array_opps", "tf.python.ops.array_opps", "array_ops"),
        ("from tensorflow.python.ops.array_ops import nonsense", "array_ops.nonsense", "nearest"),
        ("import tensorflow.nonsense.inner", "tf.nonsense", "nearest"),
        ("from tensorflow import matmull", "tf.matmull", "matmul"),
        ("from tensorflow.contrib.eager import Iterator", "tf.contrib.eager.Iterator", "tf.Session"),
        ("import tensorflow.compat.v3 as tf", "tf.compat.v3", "v1"),
        ("from tensorflow import mul", "tf.mul", "tf.multiply"),
    ],
)
def test_paths_that_are_not_there_say_what_there_is(tf, line, asked, there):
    with pytest.raises(ImportError) as caught:
        exec(line)
    assert asked in str(caught.value) and there in str(caught.value)


@pytest.mark.parametrize(
    "path", ["contrib.learn.python.learn.datasets.mnist", "python.util.tf_inspect", "keras", "python.ops.array_ops"]
)
def test_a_module_can_be_asked_for_what_it_does_not_have(tf, path):
    assert not hasattr(importlib.import_module(f"tensorflow.{path}"), "NONSENSE")


def test_modules_that_are_shared_are_set_apart(tf):
    """What a program sets in TensorFlow's modules does not change tfray's."""
    tf.nn.relu = "mine"
    assert importlib.import_module("tensorflow.nn").relu == "mine" and callable(tfray.nn.relu)


def test_modules_travel_to_other_processes_as_tfrays(tf):
    assert pickle.loads(pickle.dumps(tf)) is tfray
    assert pickle.loads(pickle.dumps(tf.nn)) is tfray.nn


def test_namespaces_of_tfray_can_be_imported():
    code = (
        "import tfray.train, tfray.nn, tfray as tf\n"
        "from tfray.contrib import rnn\n"
        "from tfray.nn.rnn_cell import GRUCell\n"
        "import tfray.contrib.slim as slim\n"
        "from tfray.keras.layers import Dense\n"
        "assert tfray.train is tf.train and tf.train.__name__ == 'tfray.training.api'\n"
        "assert tf.train.__spec__.name == 'tfray.training.api' and GRUCell is tf.nn.rnn_cell.GRUCell\n"
        "try:\n    import tfray.nonsense\nexcept ModuleNotFoundError as error:\n    print(error.name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout.strip() == "tfray.nonsense"


def test_messages_of_modules_ending_in_pb2(tf):
    from tensorflow.core.example import example_pb2, feature_pb2
    from tensorflow.core.framework import summary_pb2, types_pb2

    feature = feature_pb2.Feature(int64_list=feature_pb2.Int64List(value=[3]))
    example = example_pb2.Example(features=feature_pb2.Features(feature={"a": feature}))
    again = example_pb2.Example.FromString(example.SerializeToString())
    assert list(again.features.feature["a"].int64_list.value) == [3]
    assert types_pb2.DT_FLOAT == 1 and types_pb2.DT_UINT64 == 23  # types.proto
    numbers = types_pb2.DataType
    assert (numbers.Value("DT_STRING"), numbers.Name(7)) == (7, "DT_STRING") and ("DT_HALF", 19) in numbers.items()
    assert len(numbers.keys()) == len(set(numbers.values())) == 24
    for wrong in (lambda: numbers.Value("DT_OTHER"), lambda: numbers.Name(99)):
        with pytest.raises(ValueError, match="Enum DataType has no"):
            wrong()
    summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="loss", simple_value=0.5)])
    assert summary.value[0].tag == "loss"


def test_messages_within_messages_have_tensorflows_bytes(tf):
    from tensorflow.core.framework import cost_graph_pb2, step_stats_pb2, tensor_slice_pb2
    from tensorflow.core.protobuf import trackable_object_graph_pb2

    graph = cost_graph_pb2.CostGraphDef()
    node = graph.node.add(name="a", device="cpu", id=3, control_input=[4, 5])
    node.input_info.add(preceding_node=1, preceding_port=2)
    output = node.output_info.add(size=8, alias_input_port=-1, dtype=1)
    output.shape.dim.add(size=2)
    assert graph.SerializeToString().hex() == (  # of TensorFlow 1.15
        "0a2b0a0161120363707518032204080110022a15080810ffffffffffffffffff011a0412020802200142020405"
    )
    kind = cost_graph_pb2.CostGraphDef.Node
    assert isinstance(node, kind) and isinstance(node.input_info[0], kind.InputInfo)
    assert isinstance(output, kind.OutputInfo)
    memory = step_stats_pb2.AllocatorMemoryUsed(allocator_name="cpu", total_bytes=9)
    assert memory.SerializeToString() == b"\n\x03cpu\x10\t"
    place = tensor_slice_pb2.TensorSliceProto(extent=[tensor_slice_pb2.TensorSliceProto.Extent(start=1, length=2)])
    assert place.SerializeToString() == b"\n\x04\x08\x01\x10\x02"
    objects = trackable_object_graph_pb2.TrackableObjectGraph
    assert isinstance(objects().nodes.add().children.add(), objects.TrackableObject.ObjectReference)


def test_devices_of_this_process(tf, monkeypatch):
    from tensorflow.python.client import device_lib

    names = [device.name for device in device_lib.list_local_devices() if device.device_type == "CPU"]
    assert names == ["/device:CPU:0"]
    monkeypatch.setenv("TFRAY_LOCAL_DEVICES", "3")
    assert [device.name for device in device_lib.list_local_devices()][:3] == [f"/device:CPU:{i}" for i in range(3)]
    with tfray.Session() as session:
        assert session.run(tf.constant(1)) == 1
        assert len([name for name in session.list_devices() if "CPU" in str(name)]) == 3
    two = tfray.ConfigProto(device_count={"CPU": 2})
    assert len([each for each in device_lib.list_local_devices(two) if each.device_type == "CPU"]) == 2
    monkeypatch.setenv("TFRAY_LOCAL_DEVICES", "many")
    with pytest.raises(InvalidArgumentError, match="TFRAY_LOCAL_DEVICES=many: expected a number"):
        tfray.Session()


def test_what_tensorflow_keeps_to_itself(tf):
    from tensorflow.python.framework import test_util
    from tensorflow.python.ops import control_flow_ops, math_ops
    from tensorflow.python.util.deprecation import deprecated

    v = tfray.Variable(1)
    after = control_flow_ops.with_dependencies([v.assign(5)], tfray.constant(2))
    with tfray.device("/cpu:0"):
        w = tfray.Variable([[1.0], [2.0]], name="w")
    reference = control_flow_ops.with_dependencies([w.initializer], w._ref(), name="initialised")
    assert (reference.op.colocation_groups(), reference.op.name) == ([b"loc:@w"], "initialised")
    rows = control_flow_ops.with_dependencies([w.initializer], tfray.IndexedSlices(w, tfray.constant([1])))
    with tfray.Session() as session:
        with pytest.raises(tfray.errors.FailedPreconditionError, match="Attempting to use uninitialized value w"):
            session.run(w)
        assert session.run(rows.values).tolist() == [[1], [2]]
        assert session.run(control_flow_ops.with_dependencies([w.assign_add([[1], [1]])], 7)) == 7
        assert session.run(reference).tolist() == [[1], [2]]
    with tfray.Session() as session:
        session.run(v.initializer)
        assert session.run(after) == 2 and session.run(v) == 5

    shapes = [math_ops.reduced_shape([5, 3], axes) for axes in ([], [0], [-1, 1], [0, 1])]
    with tfray.Session() as session:
        assert [shape.tolist() for shape in session.run(shapes)] == [[5, 3], [1, 3], [5, 1], [1, 1]]

    @deprecated("2017-01-01", "Use another one.")
    def function() -> int:
        return 4

    class Test(test_util.TensorFlowTestCase):
        @test_util.run_deprecated_v1
        def test_graph(self):
            assert tfray.get_default_graph() is not graph

        @test_util.run_v2_only
        def test_newer(self):
            raise AssertionError

    graph = tfray.get_default_graph()
    Test("test_graph").debug()
    assert function() == 4


def test_helpers_of_tensorflows_tests(tf):
    from tensorflow.python.framework import test_util as util

    with util.force_cpu():
        x = tfray.zeros([1, 2, 3, 4], name="x")
    with util.use_gpu():
        y = tfray.ones([1])
    with util.force_gpu():
        z = tfray.ones([1])
    assert (x.op.device, z.op.device) == ("/device:CPU:0", "/device:GPU:0")
    assert y.op.device == ("/device:GPU:0" if util.is_gpu_available() else "/device:CPU:0")
    assert util.NHWCToNCHW(x).shape.as_list() == [1, 4, 2, 3]
    assert util.NCHWToNHWC(["n", "c", "d", "h", "w"]) == ["n", "d", "h", "w", "c"]
    assert util.assert_ops_in_graph({"x": x.op.type}, tfray.get_default_graph()) == {"x": x.op}
    for wrong in ({"x": "Add"}, {"absent": "Add"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            util.assert_ops_in_graph(wrong, tfray.get_default_graph())

    calls = []
    util.skip_if(True)(calls.append)(1)
    util.skip_if(lambda: False)(calls.append)(2)
    assert calls == [2]

    @util.for_all_test_methods(util.disable_xla, "reason")
    class Test:
        def test_it(self):
            return 5

    assert Test().test_it() == 5
    # The names that TensorFlow 2.21 gives.
    assert util.generate_combinations_with_testcase_name(use_b=[True], a=["x.y", 2]) == [
        {"a": "x.y", "use_b": True, "testcase_name": "_test_a_xy_useb_True"},
        {"a": 2, "use_b": True, "testcase_name": "_test_a_2_useb_True"},
    ]


def test_a_random_forest_of_a_tutorial(tf):
    """The calls of programs that train a forest on batches of images."""
    from tensorflow.contrib.tensor_forest.python import tensor_forest
    from tensorflow.python.ops import resources

    assert tf.contrib.tensor_forest.python.tensor_forest is tensor_forest
    random = np.random.default_rng(0)
    images, classes = random.random((500, 16)).astype(np.float32), np.zeros(500, np.int32)
    classes[images[:, 3] > 0.5] = 2

    x = tf.placeholder(tf.float32, shape=[None, 16])
    y = tf.placeholder(tf.int32, shape=[None])
    hparams = tensor_forest.ForestHParams(num_classes=3, num_features=16, num_trees=10, max_nodes=100).fill()
    forest = tensor_forest.RandomForestGraphs(hparams)
    train, loss = forest.training_graph(x, y), forest.training_loss(x, y)
    inferred, _, _ = forest.inference_graph(x)
    correct = tf.equal(tf.argmax(inferred, 1), tf.cast(y, tf.int64))
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    shared = resources.initialize_resources(resources.shared_resources())
    init = tf.group(tf.global_variables_initializer(), shared)
    with tf.Session() as session:
        session.run(init)
        losses = [session.run([train, loss], {x: images, y: classes})[1] for _ in range(20)]
        assert losses[0] == -1 and losses[-1] < -10
        assert session.run(accuracy, {x: images, y: classes}) > 0.9


# -- TensorFlow 0.12 -----------------------------------------------------------------------------------------


@pytest.fixture
def old(as_tensorflow):
    return as_tensorflow("0.12")


def test_the_version_can_be_asked_for(as_tensorflow, monkeypatch):
    monkeypatch.setenv(tensorflow_modules.VARIABLE, "0.12")
    assert as_tensorflow().__version__ == "0.12.1"
    assert as_tensorflow("1.15").__version__ == "1.15.5"
    with pytest.raises(InvalidArgumentError, match=r"1\.15 and 0\.12, not of 2\.0"):
        as_tensorflow("2.0")


def test_older_names_are_hidden_without_the_option(tf):
    for name in RENAMED:
        with pytest.raises(AttributeError, match=r"--tensorflow 0\.12"):
            eval(f"tf.{name}", {"tf": tf})


def test_older_names_are_there_with_the_option(old):
    for path in older_names():
        assert eval(f"tf.{path}", {"tf": old}) is not None, path
    assert set(RENAMED) <= set(older_names())


def test_arguments_stand_as_in_0_12(old):
    from tensorflow.python.ops import array_ops, math_ops

    tf = old
    a, b = [[1.0, 2.0]], [[3.0, 4.0]]
    logits, labels = [[1.0, 2.0, 0.0]], [[0.0, 1.0, 0.0]]
    values = {
        "concat": (tf.concat(1, [a, b]), [[1, 2, 3, 4]]),
        "concat by its module": (array_ops.concat(0, [a, b]), [[1, 2], [3, 4]]),
        "split": (tf.split(1, 2, a)[1], [[2]]),
        "pack": (tf.pack([1, 2]), [1, 2]),
        "unpack": (tf.unpack(a)[0], [1, 2]),
        "reverse": (tf.reverse(a, [False, True]), [[2, 1]]),
        "select": (tf.select([True, False], [1, 2], [3, 4]), [1, 4]),
        "mul": (tf.mul(a, b), [[3, 8]]),
        "mul by its module": (math_ops.mul(a, b), [[3, 8]]),
        "batch_matmul": (tf.batch_matmul([a], [b], adj_y=True), [[[11]]]),
        "softmax": (tf.nn.softmax_cross_entropy_with_logits(logits, labels), [0.407606]),
        "sparse": (tf.nn.sparse_softmax_cross_entropy_with_logits(logits, [1]), [0.407606]),
        "sigmoid": (tf.nn.sigmoid_cross_entropy_with_logits([2.0], [1.0]), [0.126928]),
    }
    with tf.op_scope([], None, "scope") as scope:
        assert scope == "scope/"
    with tf.Session() as session:
        for name, (tensor, expected) in values.items():
            assert session.run(tensor) == pytest.approx(
                tfray.make_ndarray(tfray.make_tensor_proto(expected)), abs=1e-5
            ), name


def test_cells_take_the_arguments_of_0_12(old):
    tf = old
    cell = tf.nn.rnn_cell.BasicLSTMCell(3, 0.0, 4, state_is_tuple=True)
    outputs, state = tf.nn.rnn(cell, [tf.ones([2, 4])] * 2, dtype=tf.float32)
    tf.scalar_summary("mean", tf.reduce_mean(outputs[-1]))
    merged = tf.merge_all_summaries()
    with tf.Session() as session:
        session.run(tf.initialize_all_variables())
        assert session.run(outputs[1]).shape == (2, 3) and session.run(merged)
    assert state.h.shape.as_list() == [2, 3]
    assert tf.nn.rnn_cell.GRUCell(3, 7).state_size == 3


def test_the_strategy_of_one_replica_updates_and_reduces():
    """What TensorFlow's model optimization and others ask for, whether or not there is a strategy."""
    names = tensorflow_modules.install()
    strategy = names.distribute.get_strategy()
    assert strategy.extended.update("variable", lambda var, by: (var, by), ("more",)) == ("variable", "more")
    mean = names.distribute.ReduceOp.MEAN
    assert strategy.extended.reduce_to(mean, 3, None) == 3
    assert strategy.extended.batch_reduce_to(mean, [(1, None), (2, None)]) == [1, 2]


def test_methods_tell_their_arguments(tf):
    for made, names in {
        tf.keras.layers.Conv2D: ["self", "filters", "kernel_size", "strides"],
        tf.keras.layers.LSTM: ["self", "units", "activation", "recurrent_activation"],
        tf.keras.layers.BatchNormalization: ["self", "axis", "momentum", "epsilon"],
        tf.keras.layers.Dropout: ["self", "rate", "noise_shape", "seed"],
        tf.layers.Dense: ["self", "units", "activation", "use_bias"],
        tf.train.AdamOptimizer: ["self", "learning_rate", "beta1", "beta2"],
        tf.Variable: ["self", "initial_value", "trainable", "collections"],
    }.items():
        assert inspect.getfullargspec(made.__init__).args[:4] == names
        assert list(inspect.signature(made.__init__).parameters)[:4] == names
        assert list(inspect.signature(made).parameters)[:3] == names[1:]
    assert inspect.getfullargspec(tf.Variable.assign).args == ["self", "value", "use_locking", "name", "read_value"]
    with tf.Graph().as_default():
        layer = tf.keras.layers.Conv2D(3, 2, name="told")
        assert layer(tf.ones([1, 4, 4, 1])).shape == [1, 3, 3, 3] and layer.get_config()["filters"] == 3


def test_names_replaced_in_tensorflows_own_modules_are_replaced_in_tfrays(tf, tmp_path, monkeypatch):
    from tensorflow.python.platform import tf_logging
    from tensorflow.python.training import checkpoint_management

    from tfray.library.platform import logging
    from tfray.training.checkpoints import retention

    own = retention.time
    with mock.patch.object(checkpoint_management, "time") as clock, mock.patch.object(tf_logging, "warning") as warning:
        clock.time.return_value = 50.0
        assert retention.time is clock and logging.warning is warning
    assert retention.time is own is checkpoint_management.time and logging.warning is tf_logging.warning is not warning
    monkeypatch.setattr(tf.nn, "relu", abs)
    assert tf.nn.relu is abs is not tfray.nn.relu, "a public name is the program's own"
    tf_logging.something_else = 1
    assert not hasattr(logging, "something_else")


def test_the_parts_of_stratified_samples_have_their_names(tf):
    from tensorflow.contrib.training.python.training import sampling_ops

    labels = tf.constant([0, 2, 2])
    with tf.Session() as session:
        found = sampling_ops._estimate_data_distribution(labels, 3, 1)
        _, same, [checked] = sampling_ops._verify_input([tf.zeros([3, 2])], labels, [found])
        accept = sampling_ops._calculate_acceptance_probabilities(tf.constant([0.5, 0.5, 0.0]), [0.2, 0.8, 0.0])
        session.run(tf.global_variables_initializer())
        assert session.run([checked, same])[0].tolist() == pytest.approx([2 / 6, 1 / 6, 3 / 6])
        assert session.run(accept).tolist() == [0.25, 1, 0]
        _, _, [wrong] = sampling_ops._verify_input([], labels, [tf.constant([0.5, 0.5, 0.5])])
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(wrong)
    with pytest.raises(ValueError, match="nonzero"):
        sampling_ops._estimate_data_distribution(labels, 3, 0)
    with pytest.raises(ValueError, match="same length"):
        sampling_ops._verify_input([], labels, [tf.zeros([2]), tf.zeros([3])])
