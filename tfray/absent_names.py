"""Names of TensorFlow that tfray does not have, and what an error says about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

RENAMED: Final = {
    "batch_cholesky": "cholesky",
    "batch_cholesky_solve": "cholesky_solve",
    "batch_fft": "fft",
    "batch_fft2d": "fft2d",
    "batch_fft3d": "fft3d",
    "batch_ifft": "ifft",
    "batch_ifft2d": "ifft2d",
    "batch_ifft3d": "ifft3d",
    "batch_matmul": "matmul",
    "batch_matrix_band_part": "matrix_band_part",
    "batch_matrix_determinant": "matrix_determinant",
    "batch_matrix_diag": "matrix_diag",
    "batch_matrix_diag_part": "matrix_diag_part",
    "batch_matrix_inverse": "matrix_inverse",
    "batch_matrix_set_diag": "matrix_set_diag",
    "batch_matrix_solve": "matrix_solve",
    "batch_matrix_solve_ls": "matrix_solve_ls",
    "batch_matrix_transpose": "matrix_transpose",
    "batch_matrix_triangular_solve": "matrix_triangular_solve",
    "batch_self_adjoint_eig": "self_adjoint_eig",
    "batch_self_adjoint_eigvals": "self_adjoint_eigvals",
    "batch_svd": "svd",
    "complex_abs": "abs",
    "concat_v2": "concat",
    "image.per_image_whitening": "image.per_image_standardization",
    "inv": "reciprocal",
    "listdiff": "setdiff1d",
    "mul": "multiply",
    "neg": "negative",
    "nn.deconv2d": "nn.conv2d_transpose",
    "nn.state_saving_rnn": "nn.static_state_saving_rnn",
    "pack": "stack",
    "select": "where",
    "sub": "subtract",
    "unpack": "unstack",
}
"""Names of TensorFlow 0.12, and what 1.x calls them. With `OPTION` a program finds them."""

OPTION: Final = "tfray run-program --tensorflow 0.12"

NOT_WANTED: Final = {
    r"(.*\.)?(Ragged\w*|ragged\b.*|StaticRaggedShape)": "tf.SparseTensor, or padded tensors with tf.sequence_mask",
    r"(.*\.)?LinearOperator\w*": "matrices and the functions of tf.linalg",
    r"(.*\.)?eager\b.*": "tf.Session: operations run when a session runs them",
    r"((contrib|python)\.)?autograph\b.*": "tf.cond and tf.while_loop: Python's statements are not rewritten",
    r"lite\b.*|contrib\.lite\b.*": "tf.saved_model, and examples/serve_model.py",
    r"(.*\.)?tpu\.(?!(CrossShardOptimizer|InputPipelineConfig|RunConfig|TPUConfig|TPUEstimator(Spec)?|bfloat16_scope)$)"
    r"\w.*|(.*\.)?TPU(Distrib|Strategy|Cluster)\w*": "CPUs and GPUs; for several machines, tf.train.Trainer",
    r"(.*\.)?([Bb]oosted_?[Tt]rees\w*)": "a library of boosted trees, such as scikit-learn's",
    r"config\.experimental_connect_to_(cluster|host)": "tf.Session with a target, such as that of a tf.train.Server",
    r"distribute\.cluster_resolver\.(GCE|Kubernetes)ClusterResolver(\.\w+)?": "TFConfigClusterResolver, with TF_CONFIG "
    "set from what the cloud says: it takes no client of the cloud's interface",
    r"contrib\.distribute\.(Monitor|Multi\w+|Sta\w+|Step|UpdateContext)": "tf.distribute.Strategy.experimental_run_v2",
    r"contrib\.cudnn_rnn\.Cudnn(\w*Saveable|ParamsFormatConverter\w*)": "tf.train.Saver: weights of the layers are "
    "variables with the names and shapes of TensorFlow's checkpoints",
    r"contrib\.estimator\.DNN(Classifier|Regressor)WithLayerAnnotations": "the estimator without annotations",
    r"contrib\.learn\.extract_dask_\w+": "compute() of a frame of Dask, which gives one of pandas",
    r"contrib\.gan\.eval\.(\w*(inception|INCEPTION)\w*|preprocess_image)": "classifier_score or "
    "frechet_classifier_distance with a network of the program's own: none is downloaded",
    r"contrib\.factorization\.(.*\.)?(WALS\w*|wals\w*|factorization_ops)": "variables and an optimizer: "
    "examples/matrix_factorization.py",
    r"contrib\.factorization\.(.*\.)?(GMM\w*|gmm\w*)": "contrib.factorization.KMeans, or scikit-learn's mixtures",
    r"contrib\.learn\.SVM|contrib\.linear_optimizer\b.*|(.*\.)?(Linear)?S(DCA|dca)\w*": "tf.train.FtrlOptimizer on a "
    "linear model",
    r"LMDBReader|contrib\.data\.LMDBDataset": "tf.data.Dataset.from_generator with the package lmdb, or TFRecord files",
    r"nondifferentiable_batch_function": "tf.train.batch, or put requests together before a session runs them",
    r"profiler\.((Profiler\.)?advise|AdviceProto|OpLogProto|write_op_log|Profiler\.serialize_to_string)"
    r"|profiler\.\w+\.with_pprof_output": "tf.profiler.profile, ordered by micros or bytes",
    r"pywrap_tensorflow\b.*": "tf.train.NewCheckpointReader, and tf.errors",
    r"raw_ops\b.*": "the public functions, such as tf.matmul",
    r"saved_model\.(save|load_v2|experimental\b.*)": "tf.saved_model.simple_save and load, or a Keras model's save",
    r"train\.do_quantize_training_on_graphdef": "tf.quantization.fake_quant_with_min_max_vars around values",
    r"train\.sdca_\w+": "tf.train.FtrlOptimizer, or tf.estimator.LinearClassifier",
}
"""Names that tfray does without, as patterns of their whole paths, and what a program uses instead."""

_FEW: Final = 20
_MANY: Final = 120


def reason(path: str) -> str:
    """What an error adds about a public name that is not there, such as ``nn.rnn``; empty where nothing is known."""
    if path in RENAMED:
        return f"TensorFlow 1 calls it tf.{RENAMED[path]}; `{OPTION}` lets a program have the older names"
    for pattern, instead in NOT_WANTED.items():
        if re.fullmatch(pattern, path):
            return f"it does without: use {instead}"
    return ""


def absent(path: str, names: Sequence[str]) -> AttributeError:
    """The error for a name that is not there.

    Args:
        path: The name, without ``tf.``.
        names: What stands beside it.
    """
    name = path.rpartition(".")[2]
    if name.startswith("__"):  # tools ask every module for such names, many thousand times
        return AttributeError(f"tf.{path} does not exist in tfray")
    said = reason(path) or _there(name, names)
    return AttributeError(f"tf.{path} does not exist in tfray; {said}")


def _there(name: str, names: Sequence[str]) -> str:
    import difflib  # only errors need it

    near = difflib.get_close_matches(name, names, 5, 0.6)
    if len(names) > _FEW and near:
        return f"nearest to it are {', '.join(near)}"
    if len(names) > _MANY:
        return f"none of the {len(names)} names there is like it"
    return f"there are {', '.join(names)}" if names else "nothing is there"
