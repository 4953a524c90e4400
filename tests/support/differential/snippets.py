"""Small programs with state, control flow and gradients, as calls of random programs: ``snippet(tf, *arguments)``.

Each gives tensors. Variables are of the resource kind, and their initial values depend on no placeholder: both sides
run all initializers before a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def _variable(tf: Any, value: Any, **options: Any) -> Any:
    return tf.Variable(np.asarray(value), use_resource=True, **options)


def variable_in_loop(tf: Any, x: Any, start: float, turns: int) -> list[Any]:
    """A variable that the body of a loop assigns and reads."""
    v = _variable(tf, np.asarray(start, x.dtype.as_numpy_dtype))

    def body(i: Any, total: Any) -> Any:
        with tf.control_dependencies([v.assign(v * 0.5 + 1)]):
            now = v.read_value()
        with tf.control_dependencies([now]):  # the next turn assigns
            return i + 1, total + tf.reduce_sum(tf.tanh(x) + 2) * now

    total = tf.while_loop(lambda i, _: i < turns, body, [0, tf.zeros([], x.dtype)])[1]
    with tf.control_dependencies([total]):
        return [total, v.read_value()]


def variable_in_cond(tf: Any, condition: Any, x: Any) -> list[Any]:
    """A variable that one branch of two assigns."""
    v = _variable(tf, np.float32(2))

    def yes() -> Any:
        return tf.identity(v.assign_add(tf.cast(tf.size(x), tf.float32)))

    given = tf.cond(tf.reduce_all(condition), yes, lambda: tf.constant(-1.0))
    with tf.control_dependencies([given]):
        return [given, v.read_value()]


def updated(tf: Any, name: str, start: list[Any], dtype: str, indices: Any, values: Any) -> list[Any]:
    """A variable of which rows are updated."""
    v = _variable(tf, np.asarray(start, dtype))
    with tf.control_dependencies([getattr(tf, name)(v, indices, values)]):
        return [v.read_value()]


def assigned(tf: Any, name: str, start: Any, value: Any) -> list[Any]:
    """A variable that is assigned."""
    v = _variable(tf, np.asarray(start, value.dtype.as_numpy_dtype))
    with tf.control_dependencies([getattr(tf, name)(v, value)]):
        return [v.read_value()]


def slice_assigned(tf: Any, x: Any, start: int, end: int) -> list[Any]:
    """Rows of a variable that are assigned by a slice."""
    v = _variable(tf, np.arange(5.0).astype(x.dtype.as_numpy_dtype))
    with tf.control_dependencies([v[start:end].assign(x[start:end])]):
        return [v.read_value()]


def array_of_rows(tf: Any, x: Any, how: str) -> list[Any]:
    """A TensorArray, filled and read in various ways."""
    rows = tf.shape(x)[0]
    array = tf.TensorArray(x.dtype, size=rows, dynamic_size=how == "grows", clear_after_read=False)
    if how == "loop":
        array = tf.while_loop(lambda i, _: i < rows, lambda i, a: (i + 1, a.write(i, tf.tanh(x[i]))), [0, array])[1]
        return [array.stack(), array.size()]
    array = array.unstack(x)
    if how == "grows":
        array = array.write(rows + 1, x[0])
        return [array.stack(), array.size()]
    if how == "gather":
        return [array.gather([0, 0]), array.read(0)]
    if how == "split":
        return [tf.TensorArray(x.dtype, size=2).split(x, [1, rows - 1]).concat()]
    if how == "scatter":
        return [tf.TensorArray(x.dtype, size=rows + 1).scatter(tf.range(rows)[::-1], x).stack()]
    return [array.concat()]


def nested_loops(tf: Any, x: Any, outer: int, inner: int) -> list[Any]:
    """A loop in a loop."""

    def body(i: Any, y: Any) -> Any:
        y = tf.while_loop(lambda j, _: j < inner, lambda j, z: (j + 1, tf.sin(z) + x), [0, y])[1]
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * 0.5, lambda: tf.tanh(y))

    return list(tf.while_loop(lambda i, _: i < outer, body, [0, x]))


def gradient_in_loop(tf: Any, x: Any, turns: int) -> list[Any]:
    """Gradient descent within a loop."""

    def body(i: Any, y: Any) -> Any:
        (d_y,) = tf.gradients(tf.reduce_sum(tf.square(tf.sin(y))), [y])
        return i + 1, y - 0.1 * d_y

    return [tf.while_loop(lambda i, _: i < turns, body, [0, x])[1]]


def loop_with_shapes(tf: Any, x: Any, turns: int, limit: Any) -> list[Any]:
    """A loop whose tensor grows, with an upper bound of its turns."""
    invariants = [tf.TensorShape([]), tf.TensorShape([None, *x.shape.as_list()[1:]])]
    made = tf.while_loop(
        lambda i, _: i < turns,
        lambda i, y: [i + 1, tf.concat([y, x], 0)],
        [0, x],
        shape_invariants=invariants,
        maximum_iterations=limit,
    )
    return list(made)


def second_gradients(tf: Any, name: str, x: Any) -> list[Any]:
    """A gradient, and its gradient."""
    function: Any = tf
    for part in name.split("."):
        function = getattr(function, part)
    y = function(x)
    (first,) = tf.gradients(y, [x])
    if first is None:
        return [y]
    (second,) = tf.gradients(first * tf.cos(first), [x])
    return [y, first] if second is None else [y, first, second]


def second_gradients_of_two(tf: Any, name: str, x: Any, y: Any) -> list[Any]:
    """Gradients of gradients of a function of two tensors."""
    z = getattr(tf, name)(x, y)
    first = [d for d in tf.gradients(z, [x, y]) if d is not None]
    second = [d for d in tf.gradients([tf.reduce_sum(tf.sin(d)) for d in first], [x, y]) if d is not None]
    return [z, *first, *second]


def hessian(tf: Any, x: Any) -> list[Any]:
    """A matrix of second derivatives."""
    return tf.hessians(tf.reduce_sum(tf.sin(x) * tf.reduce_sum(tf.square(x))), [x])


def gradient_options(tf: Any, x: Any, y: Any, unconnected: str, stop: bool) -> list[Any]:
    """Gradients with what is not reached, and with tensors taken as constants."""
    z = tf.square(x)
    options = {"unconnected_gradients": getattr(tf.UnconnectedGradients, unconnected)}
    if stop:
        options["stop_gradients"] = [z]
    found = tf.gradients(tf.reduce_sum(tf.exp(-z)) - tf.reduce_sum(z), [x, y, z], **options)
    return [d for d in found if d is not None] + [tf.constant([d is None for d in found])]


def custom(tf: Any, x: Any, scale: float) -> list[Any]:
    """A gradient of the program's own."""

    @tf.custom_gradient
    def scaled(given: Any) -> Any:
        return tf.identity(given), lambda d: d * scale

    return [scaled(x)]


def several_cases(tf: Any, x: Any, exclusive: bool) -> list[Any]:
    """`tf.case`."""
    total = tf.reduce_sum(x)
    pairs = [(total < 0, lambda: tf.tanh(x)), (total > 3, lambda: tf.exp(-x))]
    return [tf.case(pairs, default=lambda: x * 2, exclusive=exclusive)]


def switched(tf: Any, index: int, x: Any) -> list[Any]:
    """`tf.switch_case`."""
    branches = {0: lambda: tf.sin(x), 1: lambda: tf.cos(x), 3: lambda: x * x}
    return [tf.switch_case(tf.constant(index) + tf.zeros([], tf.int32), branches, default=lambda: -x)]


def scanned(tf: Any, x: Any, start: float, reverse: bool) -> list[Any]:
    """`tf.scan` with a start."""
    zero = tf.zeros_like(x[0]) + start
    return [tf.scan(lambda a, row: tf.tanh(a + row), x, zero, reverse=reverse)]


def mapped_pairs(tf: Any, x: Any, y: Any) -> list[Any]:
    """`tf.map_fn` over two tensors, with two results."""
    return list(tf.map_fn(lambda pair: (tf.sin(pair[0]), pair[1]), (x, y)))


def queued(tf: Any, x: Any, kind: str) -> list[Any]:
    """What goes through a queue."""
    queue = getattr(tf, kind)(10, [x.dtype], [x.shape.as_list()])
    with tf.control_dependencies([queue.enqueue(x)]):
        more = queue.enqueue_many(tf.stack([x, x]))
    with tf.control_dependencies([more]):
        first = queue.dequeue()
    with tf.control_dependencies([first]):
        rest = queue.dequeue_many(queue.size())
    return [first, rest] if kind == "FIFOQueue" else [rest]


def optimized(tf: Any, name: str, args: list[float], start: list[float], turns: int) -> list[Any]:
    """Steps of an optimizer."""
    v = _variable(tf, np.asarray(start, np.float32))
    optimizer = getattr(tf.train, name)(*args)
    done: list[Any] = []
    for _ in range(turns):
        with tf.control_dependencies(done):
            loss = tf.reduce_sum(tf.square(v.read_value() - 1.5) * tf.constant([1.0, 2.0, 0.5]))
            done = [optimizer.apply_gradients([(tf.gradients(loss, [v])[0], v)])]
    with tf.control_dependencies(done):
        return [v.read_value()]


def measured(tf: Any, name: str, args: list[Any], options: dict[str, Any]) -> list[Any]:
    """A metric after one update."""
    value, update = getattr(tf.metrics, name)(*args, **options)
    with tf.control_dependencies(tf.nest.flatten(update)):
        return [tf.identity(each) for each in tf.nest.flatten(update)] + [tf.zeros([]) * len(tf.nest.flatten(value))]


def looked_up(tf: Any, keys: Any, default: int) -> list[Any]:
    """A table."""
    words = tf.lookup.KeyValueTensorInitializer(["a", "bc", "def"], [1, 2, 3], tf.string, tf.int64)
    table = tf.lookup.StaticHashTable(words, default)
    return [table.lookup(keys), table.size()]


def parted(tf: Any, x: Any, parts: list[int], count: int) -> list[Any]:
    """Rows taken apart and put together."""
    pieces = tf.dynamic_partition(tf.sin(x), parts, count)
    places = tf.dynamic_partition(tf.range(len(parts)), parts, count)
    return [*pieces, tf.dynamic_stitch(places, pieces)]


def decomposed(tf: Any, name: str, x: Any) -> list[Any]:
    """What a matrix's parts make together: alone they are told up to signs."""
    if name == "svd":
        s, u, v = tf.svd(x)
        return [s, tf.matmul(u * tf.expand_dims(s, -2), v, adjoint_b=True)]
    if name == "qr":
        q, r = tf.qr(x)
        return [tf.matmul(q, r), tf.abs(r)]
    if name == "eigh":
        values, vectors = tf.self_adjoint_eig(x + tf.matrix_transpose(x))
        return [values, tf.matmul(vectors * tf.expand_dims(tf.sin(values), -2), vectors, adjoint_b=True)]
    lower, order = tf.linalg.lu(x)
    return [lower, order]


def of_shape(tf: Any, name: str, args: list[Any], options: dict[str, Any]) -> list[Any]:
    """Shape and dtype of what is random."""
    function: Any = tf
    for part in name.split("."):
        function = getattr(function, part)
    made = function(*args, **options)
    made = made if isinstance(made, (list, tuple)) else [made]
    return [each for tensor in made for each in (tf.shape(tensor), tf.zeros_like(tensor, tf.bool))]


def pipeline(tf: Any, x: Any, batch: int, drop: bool, repeat: int, shift: int) -> list[Any]:
    """Elements of a data set."""
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(12).reshape(6, 2) + shift)
    dataset = dataset.filter(lambda row: tf.reduce_sum(row) % 3 > 0).map(lambda row: (row * 2, tf.reduce_sum(row)))
    dataset = dataset.repeat(repeat).batch(batch, drop_remainder=drop)
    iterator = tf.data.make_initializable_iterator(dataset)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    rows, sums = iterator.get_next()
    return [rows, sums, tf.cast(tf.size(rows), x.dtype) * x]


def python_function(tf: Any, x: Any) -> list[Any]:
    """A function of NumPy arrays."""
    return tf.py_func(lambda a: [a * 2, np.int64(a.size)], [x], [x.dtype, tf.int64])


def defaulted(tf: Any, x: Any, shape: list[Any]) -> list[Any]:
    """A placeholder that is not fed."""
    return [tf.placeholder_with_default(x, shape) * 2]


def checked(tf: Any, name: str, args: list[Any], x: Any) -> list[Any]:
    """A tensor behind an assertion."""
    with tf.control_dependencies([getattr(tf, name)(*args)]):
        return [tf.identity(x)]


def clipped_together(tf: Any, x: Any, y: Any, norm: float) -> list[Any]:
    """`tf.clip_by_global_norm`."""
    clipped, total = tf.clip_by_global_norm([x, y], norm)
    return [*clipped, total]


def normalized(tf: Any, x: Any, is_training: bool) -> list[Any]:
    """`tf.nn.fused_batch_norm`: its first three results, the others are of each library's own."""
    depth = x.shape[-1].value if hasattr(x.shape[-1], "value") else x.shape[-1]
    ones = tf.ones([depth], tf.float32)
    given = {} if is_training else {"mean": ones * 0.3, "variance": ones * 0.7}
    return list(tf.nn.fused_batch_norm(x, ones * 1.5, ones * 0.2, is_training=is_training, **given))[:3]


def called(tf: Any, x: Any) -> list[Any]:
    """`tf.function`."""

    @tf.function(autograph=False)
    def inner(given: Any) -> Any:
        return tf.tanh(given) * 2, tf.reduce_sum(given)

    return list(inner(x))


def coded(tf: Any, image: Any, channels: int) -> list[Any]:
    """An image as PNG, and back."""
    code = tf.image.encode_png(image)
    return [tf.image.decode_png(code, channels), tf.image.decode_image(code, channels)]


def serialized(tf: Any, x: Any) -> list[Any]:
    """A sparse tensor as strings, and back."""
    many = tf.io.deserialize_many_sparse(tf.io.serialize_many_sparse(x), x.dtype)
    return [many.indices, many.values, many.dense_shape, tf.io.parse_tensor(tf.io.serialize_tensor(x.values), x.dtype)]


def parsed(tf: Any, x: Any, default: Any, count: int) -> list[Any]:
    """Features of examples, some of which are missing."""
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0, 3.0][:count]))
    examples = [tf.train.Example(features=tf.train.Features(feature={"a": feature})), tf.train.Example()]
    features = {"a": tf.VarLenFeature(tf.float32), "b": tf.FixedLenFeature([], tf.float32, default)}
    found = tf.io.parse_example([each.SerializeToString() for each in examples], features)
    return [found["a"].indices, found["a"].values, found["a"].dense_shape, found["b"], x]
