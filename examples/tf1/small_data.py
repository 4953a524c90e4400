"""Real data for the programs of this folder: scikit-learn's handwritten digits as files of MNIST's form, and a text."""

import gzip
import os

import numpy as np

TEXT = """
Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once or twice
she had peeped into the book her sister was reading, but it had no pictures or conversations in it, "and what is the
use of a book," thought Alice, "without pictures or conversations?"
So she was considering in her own mind (as well as she could, for the hot day made her feel very sleepy and stupid),
whether the pleasure of making a daisy-chain would be worth the trouble of getting up and picking the daisies, when
suddenly a White Rabbit with pink eyes ran close by her.
"""
"""How "Alice's Adventures in Wonderland" begins (Lewis Carroll, 1865; in the public domain)."""


def digits():
    """1797 images, uint8 of 28 x 28 pixels as in MNIST, enlarged from 8 x 8, and their labels, in a random order."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.RandomState(0).permutation(len(found.target))
    large = np.kron(found.images[order] * 255 / 16, np.ones([3, 3]))
    return np.pad(large, [(0, 0), (2, 2), (2, 2)]).astype(np.uint8), found.target[order].astype(np.uint8)


def write_mnist(folder):
    """Write the four files of MNIST with these digits, 300 of them to test with, unless files are there."""
    os.makedirs(folder, exist_ok=True)
    images, labels = digits()
    for name, array in [
        ("train-images-idx3-ubyte.gz", images[300:]),
        ("train-labels-idx1-ubyte.gz", labels[300:]),
        ("t10k-images-idx3-ubyte.gz", images[:300]),
        ("t10k-labels-idx1-ubyte.gz", labels[:300]),
    ]:
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            header = [0, 0, 8, array.ndim]
            sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
            with gzip.open(path, "wb") as file:
                file.write(bytes(header) + sizes + array.tobytes())
    return folder
