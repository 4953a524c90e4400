"""``tf.keras.preprocessing.image``: images as arrays, and batches of them that are changed at random."""

from tfray.keras.preprocessing.image_batches import DataFrameIterator as DataFrameIterator
from tfray.keras.preprocessing.image_batches import DirectoryIterator as DirectoryIterator
from tfray.keras.preprocessing.image_batches import ImageDataGenerator as ImageDataGenerator
from tfray.keras.preprocessing.image_batches import Iterator as Iterator
from tfray.keras.preprocessing.image_batches import NumpyArrayIterator as NumpyArrayIterator
from tfray.keras.preprocessing.image_changes import apply_affine_transform as apply_affine_transform
from tfray.keras.preprocessing.image_changes import apply_brightness_shift as apply_brightness_shift
from tfray.keras.preprocessing.image_changes import apply_channel_shift as apply_channel_shift
from tfray.keras.preprocessing.image_changes import array_to_img as array_to_img
from tfray.keras.preprocessing.image_changes import img_to_array as img_to_array
from tfray.keras.preprocessing.image_changes import load_img as load_img
from tfray.keras.preprocessing.image_changes import random_brightness as random_brightness
from tfray.keras.preprocessing.image_changes import random_channel_shift as random_channel_shift
from tfray.keras.preprocessing.image_changes import random_rotation as random_rotation
from tfray.keras.preprocessing.image_changes import random_shear as random_shear
from tfray.keras.preprocessing.image_changes import random_shift as random_shift
from tfray.keras.preprocessing.image_changes import random_zoom as random_zoom
from tfray.keras.preprocessing.image_changes import save_img as save_img

__all__ = [
    "DataFrameIterator",
    "DirectoryIterator",
    "ImageDataGenerator",
    "Iterator",
    "NumpyArrayIterator",
    "apply_affine_transform",
    "apply_brightness_shift",
    "apply_channel_shift",
    "array_to_img",
    "img_to_array",
    "load_img",
    "random_brightness",
    "random_channel_shift",
    "random_rotation",
    "random_shear",
    "random_shift",
    "random_zoom",
    "save_img",
]
