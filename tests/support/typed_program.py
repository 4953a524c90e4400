"""A user's program that touches 200 public names: `mypy --strict` and pyright take it as it is. It is never run."""

from __future__ import annotations

import numpy as np

import tfray as tf

# -- arrays and arithmetic
x = tf.placeholder(tf.float32, [None, 8], name="x")
labels = tf.placeholder_with_default(tf.zeros([4], tf.int64), [None])
half = tf.constant(0.5, tf.float16)
numbers = tf.range(8)
total: tf.Tensor = tf.reduce_sum(tf.square(x) + 2.0 * tf.abs(x) - x / 3.0, axis=1)
product = tf.matmul(x, x, transpose_b=True)
mixed = tf.where(tf.greater(x, 0.0), tf.sqrt(tf.maximum(x, 1e-6)), tf.zeros_like(x))
joined = tf.concat([x, mixed], axis=1)
stacked = tf.stack([x, x])
parts = tf.split(joined, 2, axis=1)
first = parts[0]
rows: list[tf.Tensor] = tf.unstack(tf.ones([3, 2]))
picked = tf.gather(x, [0, 1])
picked_nd = tf.gather_nd(x, [[0, 0]])
sliced = tf.slice(x, [0, 0], [1, 2])
strided = x[:, ::2]
shaped = tf.reshape(tf.transpose(x), [-1])
wider = tf.tile(tf.expand_dims(x, 0), [2, 1, 1])
thin = tf.squeeze(wider, axis=[0])
padded = tf.pad(x, [[0, 0], [1, 1]])
ids = tf.argmax(x, axis=1)
least = tf.argmin(x, axis=1)
whole = tf.cast(x, tf.int32)
means = tf.reduce_mean(x), tf.reduce_max(x), tf.reduce_min(x), tf.reduce_prod(x), tf.reduce_logsumexp(x)
checks = tf.reduce_all(tf.is_finite(x)), tf.reduce_any(tf.is_nan(x))
hot = tf.one_hot(ids, 8)
same = tf.equal(ids, least), tf.not_equal(ids, least), tf.less(ids, least)
logic = tf.logical_and(*checks), tf.logical_or(*checks), tf.logical_not(checks[0])
waves = tf.sin(x), tf.cos(x), tf.tanh(x), tf.sigmoid(x), tf.exp(x), tf.log(x)
clipped = tf.clip_by_value(x, -1.0, 1.0)
normed, norm = tf.clip_by_global_norm([x], 1.0)
summed = tf.add_n([x, mixed])
running = tf.cumsum(x, axis=1)
ordered = tf.sort(x)
top, where_top = tf.nn.top_k(x, k=2)
einsum = tf.einsum("ij,kj->ik", x, x)
segments = tf.segment_sum(x, tf.constant([0, 0, 1]))
sizes = tf.shape(x), tf.size(x), tf.rank(x)
kept = tf.boolean_mask(x, tf.greater(total, 0.0))
values, indices = tf.unique(ids)
unit = tf.eye(3)
filled = tf.fill([2, 2], 7)
line = tf.linspace(0.0, 1.0, 5)
mask = tf.sequence_mask([1, 2], 3)
stopped = tf.stop_gradient(x)
named = tf.identity(x, name="same")
drawn = tf.random_normal([2, 2]), tf.random_uniform([2, 2]), tf.truncated_normal([2, 2]), tf.random_shuffle(x)
inverse = tf.matrix_inverse(unit)
texts = tf.string_join([tf.as_string(ids), tf.constant("!")])
number = tf.string_to_number(tf.constant(["1.5"]))

# -- namespaces of operations
hidden = tf.nn.relu(tf.nn.xw_plus_b(x, tf.ones([8, 4]), tf.zeros([4])))
dropped = tf.nn.dropout(hidden, keep_prob=0.9)
chances = tf.nn.softmax(hidden)
entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hidden)
soft = tf.nn.softmax_cross_entropy_with_logits_v2(labels=chances, logits=hidden)
both = tf.nn.sigmoid_cross_entropy_with_logits(labels=chances, logits=hidden)
images = tf.reshape(tf.range(128.0), [2, 8, 8, 1])
folded = tf.nn.conv2d(images, tf.ones([3, 3, 1, 2]), strides=[1, 1, 1, 1], padding="SAME")
pooled = tf.nn.max_pool(folded, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
averaged = tf.nn.avg_pool(folded, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
biased = tf.nn.bias_add(folded, tf.zeros([2]))
centre, spread = tf.nn.moments(x, axes=[0])
table = tf.nn.embedding_lookup(tf.ones([10, 4]), ids)
l2 = tf.nn.l2_loss(x) + tf.nn.l2_loss(tf.nn.l2_normalize(x, 0)) + tf.nn.elu(0.5)
resized = tf.image.resize_bilinear(images, [4, 4])
flipped = tf.image.flip_left_right(images)
triangle = tf.linalg.band_part(unit, -1, 0)
determinant = tf.linalg.det(unit)
modulus = tf.math.floormod(whole, 3)
noise = tf.random.normal([2])
spectrum = tf.signal.rfft(line)
letters = tf.strings.length(texts)
bits = tf.bitwise.bitwise_and(whole, whole)
sparse = tf.SparseTensor(indices=[[0, 1]], values=[1.0], dense_shape=[2, 2])
dense = tf.sparse_tensor_to_dense(sparse)
added = tf.sparse.reduce_sum(sparse)
united = tf.sets.set_union(tf.constant([[1]]), tf.constant([[2]]))
with tf.control_dependencies([tf.debugging.assert_positive(tf.abs(x) + 1.0)]):
    checked = tf.debugging.check_numerics(x, "x")

# -- control flow
branch = tf.cond(checks[0], lambda: x, lambda: mixed)
looped = tf.while_loop(lambda i: tf.less(i, 10), lambda i: i + 1, [tf.constant(0)])
mapped = tf.map_fn(lambda row: row * 2.0, x)
folds = tf.foldl(lambda a, b: a + b, x)
done = tf.group(checked, tf.no_op())
array = tf.TensorArray(tf.float32, size=3).write(0, 1.0).stack()
called = tf.py_func(np.sin, [x], tf.float32)


@tf.custom_gradient
def doubled(value: tf.Tensor) -> tuple[tf.Tensor, object]:
    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return upstream * 2.0

    return value * 2.0, gradient


# -- variables and scopes
with tf.variable_scope("net", reuse=tf.AUTO_REUSE, initializer=tf.glorot_uniform_initializer()) as scope:
    kernel = tf.get_variable("kernel", [8, 4], regularizer=tf.contrib.layers.l2_regularizer(1e-4))
    bias = tf.get_variable("bias", [4], initializer=tf.zeros_initializer())
with tf.name_scope("output"), tf.device("/cpu:0"):
    logits = tf.matmul(x, kernel) + bias
plain = tf.Variable(tf.ones([2]), trainable=False, name="plain")
updates = tf.assign(plain, [1.0, 2.0]), tf.assign_add(plain, [1.0, 1.0]), plain.assign_sub([0.5, 0.5])
scattered = tf.scatter_add(plain, [0], [1.0])
everything = tf.global_variables(), tf.trainable_variables(), tf.local_variables()
start = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer())
tf.add_to_collection(tf.GraphKeys.LOSSES, l2)
collected = tf.get_collection(tf.GraphKeys.LOSSES)
queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]])
enqueue, dequeue = queue.enqueue(1.0), queue.dequeue()

# -- layers, losses, metrics
dense_layer = tf.layers.dense(x, 16, activation=tf.nn.relu)
wide = tf.layers.conv2d(images, 4, 3, padding="same")
flat = tf.layers.flatten(tf.layers.max_pooling2d(wide, 2, 2))
thinned = tf.layers.dropout(flat, rate=0.5, training=True)
even = tf.layers.batch_normalization(dense_layer, training=True)
loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
squared = tf.losses.mean_squared_error(labels=x, predictions=mixed)
whole_loss = tf.losses.get_total_loss()
accuracy, update_accuracy = tf.metrics.accuracy(labels=labels, predictions=ids)
mean, update_mean = tf.metrics.mean(total)
matrix = tf.confusion_matrix(labels, ids, num_classes=8)
cell = tf.nn.rnn_cell.LSTMCell(8)
stacked_cells = tf.nn.rnn_cell.MultiRNNCell([cell, tf.nn.rnn_cell.GRUCell(8)])
outputs, state = tf.nn.dynamic_rnn(stacked_cells, wider, dtype=tf.float32)
bell = tf.distributions.Normal(loc=0.0, scale=1.0)
sample = bell.sample(3)
hashed = tf.lookup.HashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)

# -- input
data = tf.data.Dataset.from_tensor_slices(np.arange(10)).shuffle(10).repeat(2).batch(4).map(lambda n: n + 1).prefetch(1)
iterator = data.make_one_shot_iterator()
element = iterator.get_next()
features = {"age": tf.FixedLenFeature([], tf.float32), "words": tf.VarLenFeature(tf.string)}
parsed = tf.parse_single_example(tf.constant(b""), features)
column = tf.feature_column.numeric_column("age")
layer = tf.feature_column.input_layer({"age": [[1.0]]}, [column])
record = tf.train.Example(
    features=tf.train.Features(feature={"age": tf.train.Feature(float_list=tf.train.FloatList(value=[3.0]))})
)
data_bytes: bytes = record.SerializeToString()
with tf.python_io.TFRecordWriter("records") as writer:
    writer.write(data_bytes)
found = tf.gfile.Exists("records"), tf.gfile.Glob("*"), tf.io.gfile
tf.flags.DEFINE_integer("steps", 10, "how many steps")

# -- training
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.1, step, 100, 0.9)
optimizer = tf.train.AdamOptimizer(rate)
gradients = optimizer.compute_gradients(loss)
train_op = optimizer.apply_gradients(gradients, global_step=step)
others = [
    tf.train.GradientDescentOptimizer(0.1),
    tf.train.MomentumOptimizer(0.1, 0.9),
    tf.train.AdagradOptimizer(0.1),
    tf.train.RMSPropOptimizer(0.1),
    tf.train.FtrlOptimizer(0.1),
]
minimized = others[0].minimize(loss)
by_hand = tf.gradients(loss, [kernel])
averages = tf.train.ExponentialMovingAverage(0.99)
moving = averages.apply([plain])
saver = tf.train.Saver(max_to_keep=3)
tf.summary.scalar("loss", loss)
tf.summary.histogram("kernel", kernel)
summaries = tf.summary.merge_all()
tf.set_random_seed(1)
tf.logging.set_verbosity(tf.logging.INFO)
tf.logging.info("built %d operations", len(tf.get_default_graph().get_operations()))


def model(features: tf.Tensor, labels: tf.Tensor) -> tf.train.ModelSpec:
    error = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    return tf.train.ModelSpec(error, tf.train.GradientDescentOptimizer(0.1).minimize(error))


def run() -> float:
    value = float("nan")
    config = tf.ConfigProto(allow_soft_placement=True, device_count={"CPU": 2})
    with tf.Session(config=config) as session, tf.summary.FileWriter("logs", session.graph) as events:
        session.run(start)
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord=coordinator)
        options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
        try:
            _, value, merged = session.run(
                [train_op, loss, summaries], {x: np.ones([3, 8])}, options=options, run_metadata=metadata
            )
            events.add_summary(merged, 1)
            saver.save(session, "checkpoints/model", global_step=step)
        except tf.errors.OutOfRangeError as error:
            print(error.message, error.op_name)
        finally:
            coordinator.request_stop()
        coordinator.join(threads)
        newest = tf.train.latest_checkpoint("checkpoints")
        if newest is not None:
            saver.restore(session, newest)
        events.add_graph(session.graph)
    with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(last_step=10)]) as monitored:
        while not monitored.should_stop():
            monitored.run(train_op)
    return value


def train_on_a_cluster() -> tf.train.Result:
    points = np.zeros((64, 2), np.float32)
    trainer = tf.train.Trainer(
        model,
        tf.train.array_input(points, points[:, :1], batch_size=8, shuffle_seed=0),
        scaling=tf.train.ScalingConfig(workers=2, parameter_servers=1),
        run=tf.train.RunConfig(steps=10, local=True),
    )
    result = trainer.fit()
    print(result.metrics["loss"], result.variables)
    return result


def on_another_graph() -> tf.GraphDef:
    with tf.Graph().as_default() as graph:
        tensor: tf.Tensor = tf.constant([[1, 2]], dtype=tf.int32)
        shape: tf.TensorShape = tensor.shape
        operation: tf.Operation = tensor.op
        dtype: tf.DType = tensor.dtype
        print(shape.as_list(), operation.name, dtype.is_integer, tensor.get_shape())
        definition: tf.GraphDef = graph.as_graph_def()
        tf.import_graph_def(definition, name="again")
    with tf.Session(graph=graph) as session:
        kept = tf.graph_util.convert_variables_to_constants(session, definition, ["Const"])
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.Adam(), loss="mse")
    model.fit(np.zeros((4, 2)), np.zeros((4, 1)), epochs=1)
    return kept


if __name__ == "__main__":
    tf.app.run(lambda arguments: print(run(), train_on_a_cluster(), on_another_graph()))
