"""The elements of a dataset, and the errors among them."""

from __future__ import annotations

import numpy as np

import tfray as tf


def elements(dataset, most=20):
    """Elements as lists, with the class's name for each error."""
    iterator = dataset.make_initializable_iterator()
    element, found = iterator.get_next(), []
    with tf.Session() as session:
        session.run(iterator.initializer)
        while len(found) < most:
            try:
                found.append(
                    tf.contrib.framework.nest.map_structure(lambda x: np.asarray(x).tolist(), session.run(element))
                )
            except tf.errors.OutOfRangeError:
                break
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
    return found
