"""Batches of images that are changed at random.

Random numbers are NumPy's, drawn in TensorFlow 1's order: a program that seeds them gets the same batches.
"""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections import abc
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tfray.formats.files import failures_of, given_path
from tfray.keras.batch_sources import Sequence
from tfray.keras.preprocessing.image_changes import (
    MODES,
    apply_brightness_shift,
    apply_channel_shift,
    img_to_array,
    load_img,
    moved,
    save_img,
)
from tfray.keras.settings import floatx, image_data_format

_CHANNELS: Final = {"grayscale": 1, "rgb": 3, "rgba": 4}
_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
_CLASS_MODES: Final = ("categorical", "binary", "sparse", "input", None)


class Iterator(Sequence):
    """Batches of images by number, and without an end as an iterator.

    Derived classes define ``_get_batches_of_transformed_samples(index_array)``, which makes the batch of these images.

    Args:
        n: Number of images.
        batch_size: Images in a batch.
        shuffle: Take them in random order.
        seed: Seed of the order and of the changes.
        saved: The folder that the images of batches are written to, None for none; what names begin with; the format.
    """

    _name_numbers = 10_000_000
    image_data_generator: ImageDataGenerator

    def __init__(
        self,
        n: int,
        batch_size: int,
        shuffle: bool,
        seed: int | None,
        saved: tuple[str | None, str, str] = (None, "", "png"),
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, expected a whole number of at least 1")
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.save_to_dir, self.save_prefix, self.save_format = saved
        self.batch_index = self.total_batches_seen = 0
        self.lock = threading.Lock()
        self.index_array: np.ndarray | None = None
        self.index_generator = self._order_of_batches()

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise ValueError(f"Asked to retrieve element {index}, but the Sequence has length {len(self)}")
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)
        self.total_batches_seen += 1
        order = self.index_array if self.index_array is not None else self._new_order()
        return self._saved_batch_of(order[self.batch_size * index : self.batch_size * (index + 1)])

    def __iter__(self) -> abc.Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self.lock:
            index_array = next(self.index_generator)
        return self._saved_batch_of(index_array)

    def next(self) -> Any:
        """The next batch."""
        return next(self)

    def reset(self) -> None:
        """Begin anew."""
        self.batch_index = 0

    def on_epoch_end(self) -> None:
        """Take the images in a new order."""
        self._new_order()

    def _new_order(self) -> np.ndarray:
        self.index_array = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)
        return self.index_array

    def _order_of_batches(self) -> abc.Iterator[np.ndarray]:
        self.reset()
        while True:
            if self.seed is not None:
                np.random.seed(self.seed + self.total_batches_seen)
            order = self._new_order() if self.batch_index == 0 or self.index_array is None else self.index_array
            first = self.batch_index * self.batch_size
            self.batch_index = self.batch_index + 1 if self.n > first + self.batch_size else 0
            self.total_batches_seen += 1
            yield order[first : first + self.batch_size]

    def _get_batches_of_transformed_samples(self, index_array: np.ndarray) -> Any:
        raise NotImplementedError

    def _saved_batch_of(self, index_array: np.ndarray) -> Any:
        batch = self._get_batches_of_transformed_samples(index_array)
        images = batch
        while isinstance(images, (tuple, list)):
            images = images[0]
        for index, image in zip(index_array, images if self.save_to_dir else (), strict=False):
            name = f"{self.save_prefix}_{index}_{np.random.randint(self._name_numbers)}.{self.save_format}"
            save_img(os.path.join(self.save_to_dir or "", name), image, self.image_data_generator.data_format)
        return batch


class NumpyArrayIterator(Iterator):
    """Batches of images that are arrays; see `ImageDataGenerator.flow`."""

    _name_numbers = 10_000

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: ImageDataGenerator,
        batch_size: int = 32,
        shuffle: bool = False,
        sample_weight: Any = None,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        dtype: Any = None,
    ) -> None:
        image_data_generator = image_data_generator.of(data_format, dtype)
        several = isinstance(x, (tuple, list))
        self.x = np.asarray(x[0] if several else x, dtype=image_data_generator.dtype)
        others = [np.asarray(each) for each in (x[1] if isinstance(x[1], list) else [x[1]])] if several else []
        self.y = None if y is None else np.asarray(y)
        self.sample_weight = None if sample_weight is None else np.asarray(sample_weight)
        for what, values in (("x", others), ("y", [self.y]), ("sample_weight", [self.sample_weight])):
            if any(value is not None and len(value) != len(self.x) for value in values):
                raise ValueError(f"`x` (images tensor) and `{what}` should have the same length, found {len(self.x)}")
        if self.x.ndim != 4:
            raise ValueError(
                f"Input data in `NumpyArrayIterator` should have rank 4. You passed an array with shape {self.x.shape}"
            )
        if subset is not None:
            part = _part_of(len(self.x), image_data_generator.validation_split, subset)
            border = int(len(self.x) * image_data_generator.validation_split)
            if self.y is not None and not np.array_equal(np.unique(self.y[:border]), np.unique(self.y[border:])):
                raise ValueError(
                    "Training and validation subsets have different number of classes after the split. If your numpy "
                    "arrays are sorted by the label, you might want to shuffle them."
                )
            self.x, others = self.x[part], [other[part] for other in others]
            self.y = None if self.y is None else self.y[part]
            self.sample_weight = None if self.sample_weight is None else self.sample_weight[part]
        self.x_misc, self.image_data_generator = others, image_data_generator
        super().__init__(len(self.x), batch_size, shuffle, seed, (save_to_dir, save_prefix, save_format))

    def _get_batches_of_transformed_samples(self, index_array: np.ndarray) -> Any:
        generator = self.image_data_generator
        images = np.stack([generator.changed(self.x[index]) for index in index_array]).astype(generator.dtype)
        inputs = [images, *(other[index_array] for other in self.x_misc)] if self.x_misc else images
        if self.y is None:
            return inputs if not self.x_misc else (inputs,)
        both = inputs, self.y[index_array]
        return both if self.sample_weight is None else (*both, self.sample_weight[index_array])


def _part_of(count: int, share: float, subset: str) -> slice:
    if subset not in ("training", "validation"):
        raise ValueError(f'Invalid subset name: {subset}; expected "training" or "validation".')
    border = int(count * share)
    return slice(None, border) if subset == "validation" else slice(border, None)


class DirectoryIterator(Iterator):
    """Batches of images in folders, one for each class; see `ImageDataGenerator.flow_from_directory`."""

    def __init__(
        self,
        directory: str,
        image_data_generator: ImageDataGenerator,
        target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        dtype: Any = None,
    ) -> None:
        image_data_generator = image_data_generator.of(data_format, dtype)
        if color_mode not in MODES:
            raise ValueError(f'Invalid color mode: {color_mode}; expected "rgb", "rgba", or "grayscale".')
        if class_mode not in _CLASS_MODES:
            raise ValueError(f"Invalid class_mode: {class_mode}; expected one of: {_CLASS_MODES}")
        self.directory = given_path(directory, "directory")
        self.image_data_generator, self.class_mode = image_data_generator, class_mode
        self.settings = {"color_mode": color_mode, "target_size": target_size, "interpolation": interpolation}
        self.image_shape = image_data_generator.shape_of(*target_size, _CHANNELS[color_mode])
        with failures_of(self.directory):
            names = list(classes) if classes else sorted(e.name for e in os.scandir(self.directory) if e.is_dir())
            self.class_indices = {name: number for number, name in enumerate(names)}
            found = [(number, name) for name in names for number in [self.class_indices[name]]]
            files: list[str] = []
            labels: list[int] = []
            for number, name in found:
                own = _images_below(self.directory, name, follow_links)
                if subset is not None:
                    own = own[_part_of(len(own), image_data_generator.validation_split, subset)]
                files += own
                labels += [number] * len(own)
        self.filenames, self.classes = files, np.array(labels, np.int32)
        self.filepaths = [os.path.join(self.directory, name) for name in files]
        self.samples, self.num_classes = len(files), len(names)
        print(f"Found {self.samples} images belonging to {self.num_classes} classes.")
        super().__init__(self.samples, batch_size, shuffle, seed, (save_to_dir, save_prefix, save_format))

    @property
    def labels(self) -> np.ndarray:
        """The class of each file."""
        return self.classes

    def _get_batches_of_transformed_samples(self, index_array: np.ndarray) -> Any:
        generator = self.image_data_generator
        images = np.zeros((len(index_array), *self.image_shape), generator.dtype)
        for place, index in enumerate(index_array):
            images[place] = _loaded(self.filepaths[index], self.settings, generator)
        if self.class_mode is None:
            return images
        if self.class_mode == "input":
            return images, images.copy()
        labels = self.classes[index_array]
        if self.class_mode == "categorical":
            return images, np.eye(self.num_classes, dtype=generator.dtype)[labels]
        return images, labels.astype(generator.dtype)


def _images_below(directory: str, name: str, follow_links: bool) -> list[str]:
    found = []
    walk = sorted(os.walk(os.path.join(directory, name), followlinks=follow_links), key=lambda each: each[0])
    for folder, _, files in walk:
        found += [os.path.join(folder, file) for file in sorted(files) if file.lower().endswith(_ENDINGS)]
    return [os.path.relpath(path, directory) for path in found]


class DataFrameIterator(Iterator):
    """Batches of images whose paths and targets a table has; see `ImageDataGenerator.flow_from_dataframe`."""

    def __init__(
        self,
        dataframe: Any,
        directory: str | None,
        image_data_generator: ImageDataGenerator,
        x_col: str = "filename",
        y_col: Any = "class",
        weight_col: str | None = None,
        target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        dtype: Any = None,
        validate_filenames: bool = True,
    ) -> None:
        image_data_generator = image_data_generator.of(data_format, dtype)
        if class_mode not in (*_CLASS_MODES, "multi_output", "raw"):
            raise ValueError(
                f"Invalid class_mode: {class_mode}; expected one of: {(*_CLASS_MODES, 'multi_output', 'raw')}"
            )
        if class_mode == "multi_output" and not isinstance(y_col, (list, tuple)):
            raise TypeError(f'If class_mode="{class_mode}", y_col must be a list. Received {type(y_col).__name__}.')
        names = list(dataframe[x_col])
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"All values in column x_col={x_col} must be strings.")
        self.directory, self.class_mode = directory or "", class_mode
        self.image_data_generator = image_data_generator
        self.settings = {"color_mode": color_mode, "target_size": target_size, "interpolation": interpolation}
        self.image_shape = image_data_generator.shape_of(*target_size, _CHANNELS[color_mode])
        kept = np.arange(len(names))
        if validate_filenames:
            kept = np.array([place for place in kept if self._is_image(names[place])], int)
            if len(kept) < len(names):
                warnings.warn(
                    f"Found {len(names) - len(kept)} invalid image filename(s), which are left out", stacklevel=3
                )
        of_classes = class_mode in ("binary", "categorical", "sparse")
        found: list[Any] = []
        if of_classes:
            values = list(dataframe[y_col])
            kinds = (str, list, tuple) if class_mode == "categorical" else (str,)
            if not all(isinstance(value, kinds) for value in values):
                raise TypeError(f'If class_mode="{class_mode}", y_col="{y_col}" column values must be strings.')
            found = [[value] if isinstance(value, str) else list(value) for value in values]
            labels = list(classes) if classes else sorted({label for place in kept for label in found[place]})
            found = [[label for label in own if label in labels] for own in found]
            kept = kept[[bool(found[place]) for place in kept]]
            if class_mode == "binary" and len(labels) != 2:
                raise ValueError(f'If class_mode="binary" there must be 2 classes. {len(labels)} class/es were given.')
            self.class_indices = {label: number for number, label in enumerate(labels)}
        if subset is not None:
            kept = kept[_part_of(len(kept), image_data_generator.validation_split, subset)]
        self.filenames = [names[place] for place in kept]
        self.filepaths = [os.path.join(self.directory, name) for name in self.filenames]
        self.samples = len(kept)
        self.sample_weight = None if weight_col is None else np.asarray(dataframe[weight_col])[kept]
        numbers = [[self.class_indices[label] for label in found[place]] for place in kept] if of_classes else []
        self.classes: Any = numbers if class_mode == "categorical" else [each[0] for each in numbers]
        self.targets: list[np.ndarray] = []
        if class_mode == "multi_output":
            self.targets = [np.array(list(dataframe[column]))[kept] for column in y_col]
        elif class_mode == "raw":
            self.targets = [np.asarray(dataframe[y_col])[kept]]
        valid = "validated" if validate_filenames else "non-validated"
        of = f" belonging to {len(self.class_indices)} classes" if of_classes else ""
        print(f"Found {self.samples} {valid} image filenames{of}.")
        super().__init__(self.samples, batch_size, shuffle, seed, (save_to_dir, save_prefix, save_format))

    def _is_image(self, name: str) -> bool:
        return name.lower().endswith(_ENDINGS) and os.path.isfile(os.path.join(self.directory, name))

    def _get_batches_of_transformed_samples(self, index_array: np.ndarray) -> Any:
        generator = self.image_data_generator
        images = np.stack([_loaded(self.filepaths[index], self.settings, generator) for index in index_array])
        images = images.astype(generator.dtype)
        if self.class_mode is None:
            return images
        targets: Any = images.copy()
        if self.class_mode == "categorical":
            targets = np.zeros((len(index_array), len(self.class_indices)), generator.dtype)
            for place, index in enumerate(index_array):
                targets[place, self.classes[index]] = 1
        elif self.class_mode in ("binary", "sparse"):
            targets = np.array([self.classes[index] for index in index_array], generator.dtype)
        elif self.targets:
            own = [target[index_array] for target in self.targets]
            targets = own if self.class_mode == "multi_output" else own[0]
        both = images, targets
        return both if self.sample_weight is None else (*both, self.sample_weight[index_array])


def _loaded(path: str, settings: Mapping[str, Any], generator: ImageDataGenerator) -> np.ndarray:
    """An image of a file, changed at random."""
    return generator.changed(img_to_array(load_img(path, **settings), generator.data_format))


class ImageDataGenerator:
    """Batches of images, changed at random, for `fit` of a Keras model.

    Args:
        featurewise_center: Subtract the mean of each channel; `fit` finds it.
        samplewise_center: Subtract the mean of each image.
        featurewise_std_normalization: Divide by the standard deviation of each channel.
        samplewise_std_normalization: Divide by that of each image.
        zca_whitening: Make pixels independent of one another; `fit` finds how.
        zca_epsilon: A small number that this divides by at least.
        rotation_range: Degrees up to which images are turned.
        width_shift_range: How far they are moved: a part of the width if below 1, else pixels; or a list of pixels.
        height_shift_range: Likewise.
        brightness_range: Two numbers between which brightness is multiplied. It needs Pillow.
        shear_range: Degrees up to which they are sheared.
        zoom_range: How much they are enlarged: two numbers, or how far they lie from 1.
        channel_shift_range: What is added to all pixels.
        fill_mode: What lies outside: ``nearest``, ``constant``, ``reflect`` or ``wrap``.
        cval: That number, for ``constant``.
        horizontal_flip: Mirror half of them.
        vertical_flip: Turn half of them upside down.
        rescale: Number to multiply by.
        preprocessing_function: Function of an image, before that.
        data_format: ``channels_last`` or ``channels_first``.
        validation_split: Part of the images that is for validation; see `flow`.
        dtype: Dtype of the batches.

    Raises:
        ValueError: An argument is of none of these kinds.
    """

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: Any = 0.0,
        height_shift_range: Any = 0.0,
        brightness_range: Any = None,
        shear_range: float = 0.0,
        zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Callable[[np.ndarray], np.ndarray] | None = None,
        data_format: str | None = None,
        validation_split: float = 0.0,
        dtype: Any = None,
    ) -> None:
        self.featurewise_center = featurewise_center or zca_whitening
        self.samplewise_center = samplewise_center or samplewise_std_normalization
        self.featurewise_std_normalization = featurewise_std_normalization
        self.samplewise_std_normalization = samplewise_std_normalization
        self.zca_whitening, self.zca_epsilon = zca_whitening, zca_epsilon
        if featurewise_std_normalization:
            self.featurewise_center = True
        self.rotation_range, self.shear_range = rotation_range, shear_range
        self.width_shift_range, self.height_shift_range = width_shift_range, height_shift_range
        self.brightness_range, self.channel_shift_range = brightness_range, channel_shift_range
        self.fill_mode, self.cval = fill_mode, cval
        self.horizontal_flip, self.vertical_flip = horizontal_flip, vertical_flip
        self.rescale, self.preprocessing_function = rescale, preprocessing_function
        self.data_format, self.dtype = data_format or image_data_format(), dtype or floatx()
        if self.data_format not in ("channels_last", "channels_first"):
            raise ValueError(f'`data_format` should be "channels_last" or "channels_first". Received: {data_format}')
        if not 0 <= validation_split < 1:
            raise ValueError(f"`validation_split` must be strictly between 0 and 1.  Received: {validation_split}")
        self.validation_split = validation_split
        if isinstance(zoom_range, (int, float)):
            zoom_range = [1 - zoom_range, 1 + zoom_range]
        if len(zoom_range) != 2:
            raise ValueError(f"`zoom_range` should be a float or a tuple or list of two floats. Received: {zoom_range}")
        self.zoom_range = list(zoom_range)
        self.mean: Any = None
        self.std: Any = None
        self.zca_whitening_matrix: Any = None

    def shape_of(self, height: int, width: int, channels: int) -> tuple[int, ...]:
        """Shape of an image of this size."""
        return (channels, height, width) if self.data_format == "channels_first" else (height, width, channels)

    @property
    def _axes(self) -> tuple[int, int, int]:
        """Where an image has rows, columns and channels."""
        return (1, 2, 0) if self.data_format == "channels_first" else (0, 1, 2)

    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
    ) -> NumpyArrayIterator:
        """Batches of images that are arrays.

        Args:
            x: Shape ``[count, height, width, channels]``; or a pair of these, and a list of further inputs.
            y: Targets; the batches are images alone when None.
            batch_size: Images in a batch.
            shuffle: Take them in random order.
            sample_weight: Weights.
            seed: Seed of NumPy's random numbers.
            save_to_dir: A folder that the images are written to, to look at them.
            save_prefix: What the names of the files begin with.
            save_format: Their format, such as ``png``.
            subset: ``training`` or ``validation``, the parts that `validation_split` makes.

        Raises:
            ValueError: Arrays differ in length or have another rank.
        """
        saved: dict[str, Any] = {"save_to_dir": save_to_dir, "save_prefix": save_prefix, "save_format": save_format}
        return NumpyArrayIterator(x, y, self, batch_size, shuffle, sample_weight, seed, **saved, subset=subset)

    def flow_from_directory(self, directory: str, *args: Any, **kwargs: Any) -> DirectoryIterator:
        """Batches of the images in the folders of a folder, each of which is a class. It needs Pillow.

        Args:
            directory: The folder.
            *args: ``target_size`` (height and width, 256 by default), ``color_mode`` (``rgb``, ``rgba`` or
                ``grayscale``), ``classes`` (names of folders, all by default), ``class_mode`` (``categorical`` for
                one-hot targets, ``binary`` or ``sparse`` for numbers, ``input`` for the images themselves, None for no
                targets), ``batch_size``, ``shuffle`` and ``seed``.
            **kwargs: The same by name; and ``follow_links``, ``subset``, ``interpolation``, and what `flow` is told of
                where images are written.

        Raises:
            ValueError: There is no such mode.
            NotFoundError: There is no such folder.
        """
        return DirectoryIterator(directory, self, *args, **kwargs)

    def flow_from_dataframe(
        self, dataframe: Any, directory: str | None = None, x_col: str = "filename", y_col: Any = "class", **kwargs: Any
    ) -> DataFrameIterator:
        """Batches of the images whose paths a table of pandas has. It needs Pillow.

        Args:
            dataframe: The table.
            directory: The folder that paths begin at.
            x_col: The column of paths.
            y_col: The column of targets, or a list of columns.
            **kwargs: ``weight_col``, the column of weights; ``class_mode``, ``classes`` and the other arguments of
                `flow_from_directory`; with ``raw`` targets are the values, with ``multi_output`` there is a target for
                each column, and with ``categorical`` an image may have a list of classes; ``validate_filenames``, True
                by default, leaves out what is no image.

        Raises:
            ValueError: There is no such mode.
            TypeError: Values of a column are of another kind.
        """
        kwargs.pop("drop_duplicates", None)
        return DataFrameIterator(dataframe, directory, self, x_col, y_col, **kwargs)

    # -- one image -----------------------------------------------------------------------------------------

    def of(self, data_format: str | None, dtype: Any) -> ImageDataGenerator:
        """This generator, or one like it for images of another format or dtype."""
        if data_format in (None, self.data_format) and dtype in (None, self.dtype):
            return self
        other = copy.copy(self)
        other.data_format, other.dtype = data_format or self.data_format, dtype or self.dtype
        return other

    def changed(self, x: np.ndarray) -> np.ndarray:
        """An image changed at random, and then scaled."""
        return self.standardize(self.random_transform(np.array(x, self.dtype)))

    def get_random_transform(self, img_shape: Any, seed: int | None = None) -> dict[str, Any]:
        """A change drawn at random, for `apply_transform`.

        Args:
            img_shape: Shape of the image.
            seed: Seed of NumPy's random numbers.
        """
        random = np.random
        if seed is not None:
            random.seed(seed)
        row, column, _ = self._axes
        drawn: dict[str, Any] = {}
        drawn["theta"] = random.uniform(-self.rotation_range, self.rotation_range) if self.rotation_range else 0
        drawn["tx"] = _shift(self.height_shift_range, img_shape[row])
        drawn["ty"] = _shift(self.width_shift_range, img_shape[column])
        drawn["shear"] = random.uniform(-self.shear_range, self.shear_range) if self.shear_range else 0
        drawn["zx"], drawn["zy"] = (
            (1, 1) if self.zoom_range == [1, 1] else random.uniform(self.zoom_range[0], self.zoom_range[1], 2)
        )
        drawn["flip_horizontal"] = (random.random() < 0.5) * self.horizontal_flip
        drawn["flip_vertical"] = (random.random() < 0.5) * self.vertical_flip
        shift, bright = self.channel_shift_range, self.brightness_range
        drawn["channel_shift_intensity"] = random.uniform(-shift, shift) if shift else None
        drawn["brightness"] = None if bright is None else random.uniform(bright[0], bright[1])
        return drawn

    def apply_transform(self, x: np.ndarray, transform_parameters: Mapping[str, Any]) -> np.ndarray:
        """An image after a change that `get_random_transform` has drawn, or a part of one."""
        row, column, _ = self._axes
        outside = {"order": 1, "mode": self.fill_mode, "cval": self.cval}
        x = moved(x, transform_parameters, self._axes, MappingProxyType(outside))
        shift = transform_parameters.get("channel_shift_intensity")
        if shift is not None:
            x = apply_channel_shift(x, shift)
        if transform_parameters.get("flip_horizontal"):
            x = np.flip(x, column)
        if transform_parameters.get("flip_vertical"):
            x = np.flip(x, row)
        if transform_parameters.get("brightness") is not None:
            x = apply_brightness_shift(x, transform_parameters["brightness"], scale=False)
        return x

    def random_transform(self, x: np.ndarray, seed: int | None = None) -> np.ndarray:
        """An image after a change drawn at random."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def standardize(self, x: np.ndarray) -> np.ndarray:
        """An image scaled, and with means and standard deviations as the generator makes them."""
        if self.preprocessing_function is not None:
            x = self.preprocessing_function(x)
        if self.rescale:
            x = x * np.asarray(self.rescale, x.dtype)
        if self.samplewise_center:
            x = x - x.mean(keepdims=True)
        if self.samplewise_std_normalization:
            x = x / (x.std(keepdims=True) + 1e-6)
        if self.featurewise_center and self._is_fitted(self.mean, "featurewise_center"):
            x = x - self.mean
        if self.featurewise_std_normalization and self._is_fitted(self.std, "featurewise_std_normalization"):
            x = x / (self.std + 1e-6)
        if self.zca_whitening and self._is_fitted(self.zca_whitening_matrix, "zca_whitening"):
            x = (x.reshape(-1, int(np.prod(x.shape[-3:]))) @ self.zca_whitening_matrix).reshape(x.shape)
        return x

    def _is_fitted(self, value: Any, what: str) -> bool:
        if value is None:
            warnings.warn(
                f"This ImageDataGenerator specifies `{what}`, but it hasn't been fit on any training data. Fit it "
                "first by calling `.fit(numpy_data)`.",
                stacklevel=3,
            )
        return value is not None

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Find what features are to be centred, scaled and whitened with.

        Args:
            x: Images, ``[count, height, width, channels]``.
            augment: Use images that are changed at random.
            rounds: How often each, then.
            seed: Seed of NumPy's random numbers.

        Raises:
            ValueError: `x` has another rank.
        """
        images = np.array(x, self.dtype)
        if images.ndim != 4:
            raise ValueError(f"Input to `.fit()` should have rank 4. Got array with shape: {images.shape}")
        if seed is not None:
            np.random.seed(seed)
        if self.rescale:
            images *= self.rescale
        if augment:
            images = np.stack([self.random_transform(image) for _ in range(rounds) for image in images])
        row, column, _ = self._axes
        over = (0, row + 1, column + 1)
        if self.featurewise_center:
            self.mean = images.mean(over, keepdims=True)[0]
            images = images - self.mean
        if self.featurewise_std_normalization:
            self.std = images.std(over, keepdims=True)[0]
            images = images / (self.std + 1e-6)
        if self.zca_whitening:
            vectors, values, _ = np.linalg.svd(images.reshape(len(images), -1).T, full_matrices=False)
            self.zca_whitening_matrix = (vectors * (np.sqrt(len(images)) / (values + self.zca_epsilon))) @ vectors.T


def _shift(span: Any, size: int) -> Any:
    """How far to move along an axis of this size."""
    if not np.any(span):
        return 0
    if isinstance(span, float):
        drawn = np.random.uniform(-span, span)
    else:
        drawn = np.random.choice(span) * np.random.choice([-1, 1])
    return drawn * size if np.max(span) < 1 else drawn
