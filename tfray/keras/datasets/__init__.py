"""``tf.keras.datasets``: data sets from files of one's own, where Keras keeps them. Nothing is downloaded."""

from tfray.keras.datasets import boston_housing as boston_housing
from tfray.keras.datasets import cifar10 as cifar10
from tfray.keras.datasets import cifar100 as cifar100
from tfray.keras.datasets import fashion_mnist as fashion_mnist
from tfray.keras.datasets import imdb as imdb
from tfray.keras.datasets import mnist as mnist
from tfray.keras.datasets import reuters as reuters

__all__ = ["boston_housing", "cifar10", "cifar100", "fashion_mnist", "imdb", "mnist", "reuters"]
