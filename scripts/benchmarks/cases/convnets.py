"""Training steps of the four networks of convnet-benchmarks (OSDI 2016, section 6.1), and of three later ones.

The later ones, with batch norms, take smaller images than in their papers. Floors count convolutions and products, and
that every weight is read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from benchmarks.cases import Backend, Case, Counted, Options, Step, Work
from benchmarks.cases.layers import Layers

_CLASSES: Final = 1000


def _inception(net: Layers, x: Any, sizes: tuple[int, int, int, int, int, int]) -> Any:
    """Windows of four kinds side by side; `sizes` are the filters of 1x1, 3x3 and 5x5 with theirs before."""
    one, before_three, three, before_five, five, pooled = sizes
    return net.concat(
        [
            net.convolution(x, one, 1),
            net.convolution(net.convolution(x, before_three, 1), three, 3),
            net.convolution(net.convolution(x, before_five, 1), five, 5),
            net.convolution(net.max_pool(x, 3, 1, "SAME"), pooled, 1),
        ],
        3,
    )


def _alexnet(net: Layers, x: Any) -> Any:
    x = net.max_pool(net.convolution(x, 64, 11, 4, "VALID"), 3, 2)
    x = net.max_pool(net.convolution(x, 192, 5), 3, 2)
    for filters in (384, 256, 256):
        x = net.convolution(x, filters, 3)
    return net.dense(net.max_pool(x, 3, 2), 4096, 4096, _CLASSES)


def _overfeat(net: Layers, x: Any) -> Any:
    x = net.max_pool(net.convolution(x, 96, 11, 4, "VALID"), 2, 2)
    x = net.max_pool(net.convolution(x, 256, 5, padding="VALID"), 2, 2)
    for filters in (512, 1024, 1024):
        x = net.convolution(x, filters, 3)
    return net.dense(net.max_pool(x, 2, 2), 3072, 4096, _CLASSES)


def _oxfordnet(net: Layers, x: Any) -> Any:
    """Model A of the paper of the Visual Geometry Group."""
    for filters, layers in ((64, 1), (128, 1), (256, 2), (512, 2), (512, 2)):
        for _ in range(layers):
            x = net.convolution(x, filters, 3)
        x = net.max_pool(x, 2, 2)
    return net.dense(x, 4096, 4096, _CLASSES)


def _googlenet(net: Layers, x: Any) -> Any:
    x = net.max_pool(net.convolution(x, 64, 7, 2), 3, 2, "SAME")
    x = net.convolution(net.convolution(x, 64, 1), 192, 3)
    x = net.max_pool(x, 3, 2, "SAME")
    x = _inception(net, x, (64, 96, 128, 16, 32, 32))
    x = _inception(net, x, (128, 128, 192, 32, 96, 64))
    x = net.max_pool(x, 3, 2, "SAME")
    x = _inception(net, x, (192, 96, 208, 16, 48, 64))
    x = _inception(net, x, (160, 112, 224, 24, 64, 64))
    x = _inception(net, x, (128, 128, 256, 24, 64, 64))
    x = _inception(net, x, (112, 144, 288, 32, 64, 64))
    x = _inception(net, x, (256, 160, 320, 32, 128, 128))
    x = net.max_pool(x, 3, 2, "SAME")
    x = _inception(net, x, (256, 160, 320, 32, 128, 128))
    x = _inception(net, x, (384, 192, 384, 48, 128, 128))
    return net.dense(net.average(x), _CLASSES)


def _resnet_50(net: Layers, x: Any) -> Any:
    x = net.max_pool(net.relu(net.normalized(x, 64, 7, 2)), 3, 2, "SAME")
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            width, stride = 64 << stage, 2 if stage and not block else 1
            inner = net.relu(net.normalized(x, width, 1))
            inner = net.relu(net.normalized(inner, width, 3, stride))
            inner = net.normalized(inner, 4 * width, 1)
            x = net.relu(inner + (x if block else net.normalized(x, 4 * width, 1, stride)))
    return net.dense(net.average(x), _CLASSES)


def _mobilenet(net: Layers, x: Any) -> Any:
    x = net.relu(net.normalized(x, 32, 3, 2))
    wider = [(128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for filters, stride in [(64, 1), *wider]:
        x = net.relu(net.depthwise(x, 3, stride))
        x = net.relu(net.normalized(x, filters, 1))
    return net.dense(net.average(x), _CLASSES)


def _inception_v3(net: Layers, x: Any) -> Any:
    def chain(x: Any, *layers: tuple[Any, ...]) -> Any:
        """Convolutions after each other, each of filters, size and what else differs."""
        for layer in layers:
            x = net.relu(net.normalized(x, *layer))
        return x

    x = chain(x, (32, 3, 2, "VALID"), (32, 3, 1, "VALID"), (64, 3))
    x = net.max_pool(x, 3, 2)
    x = chain(x, (80, 1), (192, 3, 1, "VALID"))
    x = net.max_pool(x, 3, 2)
    for pooled in (32, 64, 64):
        five, threes = chain(x, (48, 1), (64, 5)), chain(x, (64, 1), (96, 3), (96, 3))
        x = net.concat([chain(x, (64, 1)), five, threes, chain(net.smooth(x), (pooled, 1))], 3)
    threes = chain(x, (64, 1), (96, 3), (96, 3, 2, "VALID"))
    x = net.concat([chain(x, (384, 3, 2, "VALID")), threes, net.max_pool(x, 3, 2)], 3)
    for width in (128, 160, 160, 192):
        row, column = (1, 7), (7, 1)
        one = chain(x, (width, 1), (width, row), (192, column))
        two = chain(x, (width, 1), (width, column), (width, row), (width, column), (192, row))
        x = net.concat([chain(x, (192, 1)), one, two, chain(net.smooth(x), (192, 1))], 3)
    sevens = chain(x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, "VALID"))
    x = net.concat([chain(x, (192, 1), (320, 3, 2, "VALID")), sevens, net.max_pool(x, 3, 2)], 3)
    for _ in range(2):
        one, two = chain(x, (384, 1)), chain(x, (448, 1), (384, 3))
        crosses = [chain(half, (384, size)) for half in (one, two) for size in ((1, 3), (3, 1))]
        x = net.concat([chain(x, (320, 1)), *crosses, chain(net.smooth(x), (192, 1))], 3)
    return net.dense(net.average(x), _CLASSES)


def _gradient_descent(tf: Any) -> Any:
    return tf.train.GradientDescentOptimizer(1e-4)


def _momentum(tf: Any) -> Any:
    return tf.train.MomentumOptimizer(1e-3, 0.9)


def _case(
    logits_of: Callable[[Layers, Any], Any], pixels: int, optimizer: Callable[[Any], Any] = _gradient_descent
) -> Case:
    @contextmanager
    def opened(backend: Backend, options: Options) -> Iterator[Step]:
        tf = backend.tf
        size = options.get("pixels", pixels)
        shape = [options["batch"], size, size, 3]
        random = np.random.default_rng(0)
        drawn = random.standard_normal(shape, np.float32), random.integers(_CLASSES, size=shape[0], dtype=np.int32)
        with tf.Graph().as_default():
            fed = [tf.placeholder(each.dtype, each.shape) for each in drawn]
            feeds = dict(zip(fed, drawn, strict=True))
            is_resident = options.get("resident", False)  # the batch is in variables, on the device of the step
            batch = [tf.Variable(tensor, trainable=False) for tensor in fed] if is_resident else fed
            images, labels = batch
            images = tf.cast(images, options.get("dtype", "float32"))
            net = Layers(tf, images)
            logits = tf.cast(logits_of(net, images), tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            with tf.control_dependencies(net.updates):
                train_op = optimizer(tf).minimize(tf.reduce_mean(losses))
            with tf.Session() as session:
                session.run(tf.global_variables_initializer(), feeds)
                taken = {} if is_resident else feeds
                yield Counted(lambda: session.run(train_op, taken), Work(8 * net.weights, net.flops))

    return Case(opened)


CASES: Final = {
    "alexnet": _case(_alexnet, 224),
    "overfeat": _case(_overfeat, 231),
    "oxfordnet": _case(_oxfordnet, 224),
    "googlenet": _case(_googlenet, 224),
    "inception_v3": _case(_inception_v3, 139, _momentum),
    "resnet_50": _case(_resnet_50, 64, _momentum),
    "mobilenet": _case(_mobilenet, 128, _momentum),
}
