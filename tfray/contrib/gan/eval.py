"""``tf.contrib.gan.eval``: pictures and measures of adversarial networks.

Measures take a classifier of the program's own; a network is not downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from tfray.contrib.gan.losses import check_cyclegan
from tfray.contrib.gan.namedtuples import CycleGANModel, StarGANModel
from tfray.exchange.graph_import import import_graph_def
from tfray.formats import files
from tfray.formats.files import PathLike
from tfray.formats.graph_proto import GraphDef
from tfray.framework import dtypes
from tfray.framework.dtypes import DTypeLike
from tfray.framework.graph import Tensor, get_default_graph
from tfray.library.inspect import summaries
from tfray.library.layers.losses import get_regularization_loss
from tfray.library.variables.variable_scope import variable_scope
from tfray.ops.arrays import array_ops
from tfray.ops.control.functional_ops import map_fn
from tfray.ops.image.resize_ops import resize_bilinear
from tfray.ops.linalg.decomposition_ops import self_adjoint_eig, self_adjoint_eigvals
from tfray.ops.math import math_ops
from tfray.ops.math.linalg_ops import matmul, trace
from tfray.ops.nn.cross_entropy_ops import log_softmax
from tfray.ops.nn.normalization_ops import moments

__all__ = [
    "INCEPTION_DEFAULT_IMAGE_SIZE",
    "add_cyclegan_image_summaries",
    "add_gan_model_image_summaries",
    "add_gan_model_summaries",
    "add_image_comparison_summaries",
    "add_regularization_loss_summaries",
    "add_stargan_image_summaries",
    "classifier_score",
    "classifier_score_from_logits",
    "diagonal_only_frechet_classifier_distance_from_activations",
    "frechet_classifier_distance",
    "frechet_classifier_distance_from_activations",
    "get_graph_def_from_disk",
    "image_grid",
    "image_reshaper",
    "kernel_classifier_distance",
    "kernel_classifier_distance_and_std",
    "kernel_classifier_distance_and_std_from_activations",
    "kernel_classifier_distance_from_activations",
    "mean_only_frechet_classifier_distance_from_activations",
    "preprocess_image",
    "run_image_classifier",
]

INCEPTION_DEFAULT_IMAGE_SIZE: Final = 299
"""The height and width of the images that Inception takes."""


def image_grid(
    input_tensor: Tensor, grid_shape: Sequence[int], image_shape: Sequence[int] = (32, 32), num_channels: int = 3
) -> Tensor:
    """Put images side by side.

    Args:
        input_tensor: Images ``[rows * columns, height, width, channels]``, or each as a row of numbers.
        grid_shape: ``[rows, columns]``.
        image_shape: ``[height, width]``.
        num_channels: The number of channels.

    Returns:
        Shape ``[1, rows * height, columns * width, channels]``.

    Raises:
        ValueError: The sizes do not fit.
    """
    (rows, columns), (height, width) = grid_shape, image_shape
    known = input_tensor.shape.as_list()
    if known[0] != rows * columns:
        raise ValueError(f"Grid shape {grid_shape} incompatible with minibatch size {known[0]}.")
    if known[1:] not in ([height, width, num_channels], [height * width * num_channels]):
        raise ValueError(f"Image shape and number of channels incompatible with input tensor: {input_tensor.shape}")
    parts = array_ops.reshape(input_tensor, [rows, columns, height, width, num_channels])
    lines = array_ops.transpose(parts, [0, 2, 1, 3, 4])
    return array_ops.reshape(lines, [1, rows * height, columns * width, num_channels])


def image_reshaper(images: Tensor | Sequence[Tensor], num_cols: int | None = None) -> Tensor:
    """Put images side by side, in nearly as many rows as columns; black ones fill the last row.

    Args:
        images: Shape ``[count, height, width, channels]``, or a list of images, with 1 or 3 channels.
        num_cols: The number of columns.

    Returns:
        Shape ``[1, rows * height, columns * width, channels]``.

    Raises:
        ValueError: They have another number of channels.
    """
    each = array_ops.unstack(images) if isinstance(images, Tensor) else list(images)
    each[0].shape.assert_is_fully_defined()
    height, width, channels = (size or 0 for size in each[0].shape.as_list())
    if channels not in (1, 3):
        raise ValueError(f"image_reshaper only supports 1 or 3 channel images, not {each[0].shape}")
    columns = num_cols or math.ceil(math.sqrt(len(each)))
    rows = math.ceil(len(each) / columns)
    each += [array_ops.zeros_like(each[0])] * (rows * columns - len(each))
    return image_grid(array_ops.stack(each), (rows, columns), (height, width), channels)


# -- summaries -----------------------------------------------------------------------------------------


def _of_each(kind: str, summarize: Callable[..., None], model: Any, *args: Any) -> bool:
    """Summarize both models of a `CycleGANModel`; false for other models."""
    if not isinstance(model, CycleGANModel):
        return False
    for name, part in zip(("x2y", "y2x"), model[:2], strict=True):
        with get_default_graph().name_scope(f"cyclegan_{name}_{kind}"):
            summarize(part, *args)
    return True


def add_gan_model_summaries(gan_model: Any) -> None:
    """Write histograms of the variables of both networks.

    Args:
        gan_model: The model.
    """
    if not _of_each("summaries", add_gan_model_summaries, gan_model):
        for name in ("generator_variables", "discriminator_variables"):
            with get_default_graph().name_scope(name):
                for variable in getattr(gan_model, name):
                    summaries.histogram(variable.name, variable)


def add_gan_model_image_summaries(gan_model: Any, grid_size: int = 4, model_summaries: bool = True) -> None:
    """Write grids of real and generated images, and histograms of the variables.

    Args:
        gan_model: The model.
        grid_size: The number of rows and of columns.
        model_summaries: Whether to write the histograms.

    Raises:
        ValueError: The data are no images, or fewer than the grid has.
    """
    if _of_each("image_summaries", add_gan_model_image_summaries, gan_model, grid_size, model_summaries):
        return
    for name in ("real_data", "generated_data"):
        images = getattr(gan_model, name)
        _check_images([images])
        _, height, width, channels = images.shape.as_list()
        grid = image_grid(images[: grid_size**2], (grid_size, grid_size), (height, width), channels)
        summaries.image(name, grid, max_outputs=1)
    if model_summaries:
        add_gan_model_summaries(gan_model)


def add_cyclegan_image_summaries(cyclegan_model: CycleGANModel) -> None:
    """Write, for both ways, an image beside what has become of it there and back.

    Args:
        cyclegan_model: The model.

    Raises:
        ValueError: It is another model, or the data are no images of one shape.
    """
    check_cyclegan(cyclegan_model)
    x2y, y2x, x, y = cyclegan_model
    for name, model, again in (("x2y", x2y, x), ("y2x", y2x, y)):
        every = [model.generator_inputs, model.generated_data, again]
        _check_images(every)
        with get_default_graph().name_scope(f"{name}_image_comparison_summaries"):
            _write_rows("image_comparison", [images[:1] for images in every], len(every))


def add_stargan_image_summaries(stargan_model: StarGANModel, num_images: int = 2, display_diffs: bool = False) -> None:
    """Write images beside what they become in each domain.

    Args:
        stargan_model: The model.
        num_images: How many of the batch.
        display_diffs: Also write, below, how they differ from that.

    Raises:
        ValueError: The data are no images, or the labels of the domains are no matrix.
    """
    images, labels = stargan_model.input_data, stargan_model.input_data_domain_label
    _check_images([images])
    labels.shape.assert_has_rank(2)
    labels.shape[1:].assert_is_fully_defined()
    domains = labels.shape.as_list()[1]

    def in_each_domain(image: Tensor) -> Tensor:
        with variable_scope(stargan_model.generator_scope, reuse=True):
            made = stargan_model.generator_fn(array_ops.stack([image] * domains), array_ops.eye(domains))
        rows = [image, *array_ops.unstack(made, domains)]
        if display_diffs:
            rows += [each - image for each in rows]
        return image_reshaper(rows, domains + 1)[0]

    shown = map_fn(in_each_domain, images[:num_images], parallel_iterations=num_images, back_prop=False)
    summaries.image("stargan_image_generation", shown, max_outputs=num_images)


def _check_images(every: Sequence[Tensor]) -> None:
    for images in every:
        images.shape.assert_has_rank(4)
        images.shape[1:].assert_is_fully_defined()
        images.shape.assert_is_compatible_with(every[0].shape)


def _write_rows(name: str, rows: Sequence[Tensor], columns: int) -> None:
    images = [each for row in rows for each in array_ops.unstack(row)]
    summaries.image(name, image_reshaper(images, columns), max_outputs=1)


def add_image_comparison_summaries(gan_model: Any, num_comparisons: int = 2, display_diffs: bool = False) -> None:
    """Write images that the generator was given, those that it made of them, and the real ones, one below the other.

    Args:
        gan_model: The model, whose generator is given images of the shape of the real ones.
        num_comparisons: How many of the batch.
        display_diffs: Also write how generated and real images differ.

    Raises:
        ValueError: They are no images, or of different shapes.
    """
    arguments = num_comparisons, display_diffs
    if _of_each("image_comparison_summaries", add_image_comparison_summaries, gan_model, *arguments):
        return
    every = [gan_model.generator_inputs, gan_model.generated_data, gan_model.real_data]
    _check_images(every)
    shown = [images[:num_comparisons] for images in every]
    if display_diffs:
        off = array_ops.cast(shown[1], dtypes.float32) - array_ops.cast(shown[2], dtypes.float32)
        shown.append(array_ops.cast(math_ops.abs(off), shown[1].dtype))
    _write_rows("image_comparison", shown, num_comparisons)


def add_regularization_loss_summaries(gan_model: Any) -> None:
    """Write the losses of regularizers in the scopes of both networks.

    Args:
        gan_model: The model.
    """
    if not _of_each("regularization_loss_summaries", add_regularization_loss_summaries, gan_model):
        for name in ("generator", "discriminator"):
            if scope := getattr(gan_model, f"{name}_scope"):
                summaries.scalar(f"{name}_regularization_loss", get_regularization_loss(scope.name))


# -- classifiers ---------------------------------------------------------------------------------------


def get_graph_def_from_disk(filename: PathLike) -> GraphDef:
    """The graph in a file, such as a frozen classifier.

    Args:
        filename: The file, a serialised `tf.GraphDef`.
    """
    return GraphDef.FromString(files.read_bytes(filename))


def preprocess_image(
    images: Tensor,
    height: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    width: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    scope: str | None = None,
) -> Tensor:
    """Resize images, and bring their values from 0 to 255 between -1 and 1.

    Args:
        images: Shape ``[height, width, channels]``, or with a batch before it.
        height: The new height.
        width: The new width.
        scope: Name of the operations.

    Returns:
        The same rank and float dtype; float32 of integers.
    """
    with get_default_graph().name_scope(scope or "preprocess"):
        values = images if images.dtype.is_floating else array_ops.cast(images, dtypes.float32)
        is_single = values.shape.rank == 3
        resized = resize_bilinear(array_ops.expand_dims(values, 0) if is_single else values, [height, width])
        scaled = (resized - 128.0) / 128.0
        return array_ops.squeeze(scaled, [0]) if is_single else scaled


def run_image_classifier(
    tensor: Tensor,
    graph_def: GraphDef,
    input_tensor: str,
    output_tensor: str | list[str],
    scope: str = "RunClassifier",
    *,
    allow: Collection[str] = (),
) -> Any:
    """What a frozen network makes of a tensor.

    Args:
        tensor: What the network is given.
        graph_def: The network.
        input_tensor: Name of the tensor that is fed.
        output_tensor: Name of the result, or a list of such.
        scope: Name scope of the operations.
        allow: What operations of a network from a file may use: see `tf.import_graph_def`.

    Returns:
        The result, or a list of such.

    Raises:
        PermissionDeniedError: They use more than `allow` says.
        ValueError: There are no such tensors.
    """
    names = [output_tensor] if isinstance(output_tensor, str) else output_tensor
    found: Any = import_graph_def(graph_def, {input_tensor: tensor}, names, name=scope, allow=allow)
    return found[0] if isinstance(output_tensor, str) else found


# -- measures ------------------------------------------------------------------------------------------


def _classified(images: Tensor, classifier_fn: Callable[[Tensor], Tensor], num_batches: int) -> Tensor:
    batches = array_ops.stack(array_ops.split(images, num_batches))
    found = map_fn(classifier_fn, batches, parallel_iterations=1, back_prop=False, name="RunClassifier")
    return array_ops.concat(array_ops.unstack(found, num_batches), 0)


def classifier_score(images: Tensor, classifier_fn: Callable[[Tensor], Tensor], num_batches: int = 1) -> Tensor:
    """How sure a classifier is of each image, and of how many classes they are (Salimans and others, arXiv:1606.03498).

    Args:
        images: Shape ``[images, ...]``.
        classifier_fn: Function of images that returns logits ``[images, classes]``.
        num_batches: In so many parts the images are classified.

    Returns:
        A scalar between 1 and the number of classes.
    """
    return classifier_score_from_logits(_classified(images, classifier_fn, num_batches))


def classifier_score_from_logits(logits: Tensor) -> Tensor:
    """`classifier_score` from logits ``[images, classes]``; a scalar of their dtype, computed in float64."""
    logits.shape.assert_has_rank(2)
    logs = log_softmax(array_ops.cast(logits, dtypes.float64))
    count = array_ops.cast(array_ops.shape(logs)[0], dtypes.float64)
    every = math_ops.reduce_logsumexp(logs, axis=0) - math_ops.log(count)
    divergence = math_ops.reduce_sum(math_ops.exp(logs) * (logs - every), axis=1)
    return array_ops.cast(math_ops.exp(math_ops.reduce_mean(divergence)), logits.dtype)


def frechet_classifier_distance(
    real_images: Tensor, generated_images: Tensor, classifier_fn: Callable[[Tensor], Tensor], num_batches: int = 1
) -> Tensor:
    """The distance of what a classifier sees in real and in generated images (Heusel and others, arXiv:1706.08500).

    Args:
        real_images: Shape ``[images, ...]``.
        generated_images: Likewise.
        classifier_fn: Function of images that returns activations ``[images, features]``.
        num_batches: In so many parts the images are classified.

    Returns:
        A scalar.
    """
    activations = (_classified(images, classifier_fn, num_batches) for images in (real_images, generated_images))
    return frechet_classifier_distance_from_activations(*activations)


def frechet_classifier_distance_from_activations(real_activations: Tensor, generated_activations: Tensor) -> Tensor:
    """The Fréchet distance of the normal distributions that have the means and covariances of activations.

    Args:
        real_activations: Shape ``[images, features]``.
        generated_activations: Likewise, of as many features.

    Returns:
        A scalar of their dtype, computed in float64.
    """
    wide = _wide(real_activations, generated_activations)
    covariances = []
    for values in wide:
        off = values - math_ops.reduce_mean(values, axis=0)
        count = array_ops.cast(array_ops.shape(values)[0], dtypes.float64)
        covariances.append(matmul(off, off, transpose_a=True) / (count - 1))
    real, generated = covariances
    # sqrt(real) generated sqrt(real) has the eigenvalues of real generated, and is symmetric.
    values, vectors = self_adjoint_eig(real)
    root = matmul(vectors * math_ops.sqrt(math_ops.maximum(values, 0.0)), vectors, transpose_b=True)
    product = self_adjoint_eigvals(matmul(root, matmul(generated, root)))
    shared = math_ops.reduce_sum(math_ops.sqrt(math_ops.maximum(product, 0.0)))
    distance = trace(real + generated) - 2.0 * shared + _apart(math_ops.reduce_mean(each, axis=0) for each in wide)
    return array_ops.cast(distance, real_activations.dtype)


def mean_only_frechet_classifier_distance_from_activations(
    real_activations: Tensor, generated_activations: Tensor
) -> Tensor:
    """The part of `frechet_classifier_distance_from_activations` that means make; same arguments and result."""
    wide = _wide(real_activations, generated_activations)
    return array_ops.cast(_apart(math_ops.reduce_mean(each, axis=0) for each in wide), real_activations.dtype)


def diagonal_only_frechet_classifier_distance_from_activations(
    real_activations: Tensor, generated_activations: Tensor
) -> Tensor:
    """The Fréchet distance as if features did not depend on one another, with the variances of the images themselves.

    Arguments and result are those of `frechet_classifier_distance_from_activations`.
    """
    found = (moments(each, [0]) for each in _wide(real_activations, generated_activations))
    means, variances = zip(*found, strict=True)
    return array_ops.cast(_apart(means) + _apart(map(math_ops.sqrt, variances)), real_activations.dtype)


def _wide(*activations: Tensor) -> list[Tensor]:
    """Activations as float64, which must be matrices."""
    for each in activations:
        each.shape.assert_has_rank(2)
    return [array_ops.cast(each, dtypes.float64) for each in activations]


def _apart(pair: Iterable[Tensor]) -> Tensor:
    """The square of the distance of two vectors."""
    one, other = pair
    return math_ops.reduce_sum(math_ops.squared_difference(one, other))


def kernel_classifier_distance(
    real_images: Tensor,
    generated_images: Tensor,
    classifier_fn: Callable[[Tensor], Tensor],
    num_classifier_batches: int = 1,
    max_block_size: int = 1024,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """`kernel_classifier_distance_and_std` without the error."""
    return kernel_classifier_distance_and_std(**locals())[0]


def kernel_classifier_distance_and_std(
    real_images: Tensor,
    generated_images: Tensor,
    classifier_fn: Callable[[Tensor], Tensor],
    num_classifier_batches: int = 1,
    max_block_size: int = 1024,
    dtype: DTypeLike | None = None,
) -> tuple[Tensor, Tensor]:
    """`kernel_classifier_distance_and_std_from_activations` of what a classifier sees in images.

    Args:
        real_images: Shape ``[images, ...]``.
        generated_images: Likewise.
        classifier_fn: Function of images that returns activations ``[images, features]``.
        num_classifier_batches: In so many parts the images are classified.
        max_block_size: As for that function.
        dtype: Likewise.

    Returns:
        The distance and its standard error, scalars.
    """
    real, generated = (
        _classified(images, classifier_fn, num_classifier_batches) for images in (real_images, generated_images)
    )
    return kernel_classifier_distance_and_std_from_activations(real, generated, max_block_size, dtype)


def kernel_classifier_distance_from_activations(
    real_activations: Tensor, generated_activations: Tensor, max_block_size: int = 1024, dtype: DTypeLike | None = None
) -> Tensor:
    """`kernel_classifier_distance_and_std_from_activations` without the error."""
    return kernel_classifier_distance_and_std_from_activations(**locals())[0]


def kernel_classifier_distance_and_std_from_activations(
    real_activations: Tensor, generated_activations: Tensor, max_block_size: int = 1024, dtype: DTypeLike | None = None
) -> tuple[Tensor, Tensor]:
    """The distance of activations by the kernel ``(x . y / features + 1)^3`` (Binkowski and others, arXiv:1801.01401).

    It is the mean of unbiased estimates from blocks of images, which should be in random order.

    Args:
        real_activations: Shape ``[images, features]``, a float dtype.
        generated_activations: Likewise, of as many features.
        max_block_size: At most so many images are in a block. More make the estimate better and take longer.
        dtype: Compute in this float dtype.

    Returns:
        The distance and its standard error, scalars; the error of a single block is NaN.

    Raises:
        ValueError: The numbers of features, or without `dtype` the dtypes, differ.
    """
    every = [
        each if dtype is None else array_ops.cast(each, dtype) for each in (real_activations, generated_activations)
    ]
    (real, generated), kind = every, every[0].dtype
    if generated.dtype is not kind:
        raise ValueError(f"activations are of {kind.name} and {generated.dtype.name}: give `dtype`")
    real.shape.assert_has_rank(2)
    real.shape[1:].assert_is_compatible_with(generated.shape[1:])
    features = array_ops.cast(array_ops.shape(real)[1], kind)
    most = math_ops.maximum(array_ops.shape(real)[0], array_ops.shape(generated)[0])
    blocks = (most + max_block_size - 1) // max_block_size

    def block(values: Tensor, i: Tensor) -> Tensor:
        # The last blocks have the images that are left over, one each.
        size, left = array_ops.shape(values)[0] // blocks, array_ops.shape(values)[0] % blocks
        begin, end = (each * size + math_ops.maximum(each - (blocks - left), 0) for each in (i, i + 1))
        return values[begin:end]

    def mean_kernel(x: Tensor, y: Tensor) -> Tensor:
        products = (matmul(x, y, transpose_b=True) / features + 1) ** 3
        if x is not y:
            return math_ops.reduce_mean(products)
        count = array_ops.cast(array_ops.shape(x)[0], kind)
        return (math_ops.reduce_sum(products) - trace(products)) / (count * (count - 1))

    def estimate(i: Tensor) -> Tensor:
        x, y = block(real, i), block(generated, i)
        return mean_kernel(x, x) + mean_kernel(y, y) - 2 * mean_kernel(x, y)

    estimates = map_fn(estimate, array_ops.range(blocks), kind, back_prop=False)
    distance, count = math_ops.reduce_mean(estimates), array_ops.cast(blocks, kind)
    variance = math_ops.reduce_sum(math_ops.squared_difference(estimates, distance)) / (count - 1)
    return distance, math_ops.sqrt(variance / count)
