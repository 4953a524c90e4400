"""`tf.contrib.graph_editor`: walks over a graph, and copies of parts of it with other inputs."""

from __future__ import annotations

import pytest

import tfray as tf
from tfray.contrib import graph_editor as ge


@pytest.fixture
def line():
    """``(a + b) * c`` and its negative, with a step before which something else runs."""
    a, b, c = (tf.placeholder(tf.float32, [], name) for name in "abc")
    with tf.name_scope("inner"):
        total = tf.add(a, b, "total")
    product = tf.multiply(total, c, "product")
    with tf.control_dependencies([tf.identity(b, "first").op]):
        negative = tf.negative(product, "negative")
    return a, b, c, total, product, negative


def names(ops):
    return sorted(op.name for op in ops)


def test_walks(line):
    a, _, c, total, product, negative = line
    behind = ["inner/total", "negative", "product"]
    assert names(ge.get_backward_walk_ops(product)) == ["a", "b", "c", "inner/total", "product"]
    assert names(ge.get_backward_walk_ops([product.op], inclusive=False, stop_at_ts=[total])) == ["c"]
    assert names(ge.get_backward_walk_ops(negative.op, control_inputs=True)) == ["a", "b", "c", "first", *behind]
    assert names(ge.get_forward_walk_ops(a)) == behind
    assert names(ge.get_forward_walk_ops(a.op)) == ["a", *behind]
    assert names(ge.get_forward_walk_ops(a.op, inclusive=False, within_ops=[total.op])) == ["inner/total"]
    assert names(ge.get_forward_walk_ops(a, within_ops_fn=lambda op: op.type != "Neg")) == ["inner/total", "product"]
    first = tf.get_default_graph().get_operation_by_name("first")
    assert names(ge.get_forward_walk_ops(first, control_outputs=True)) == ["first", "negative"]
    assert names(ge.get_walks_intersection_ops(a, product)) == ["inner/total", "product"]
    assert names(ge.get_walks_union_ops(c, total, backward_inclusive=False)) == ["a", "b", "negative", "product"]


def test_lists_and_names(line):
    a, b, _, total, _, _ = line
    graph = tf.get_default_graph()
    assert ge.get_tensors(graph)[:2] == [a, b] and ge.make_list_of_op(graph) == graph.get_operations()
    assert names(ge.get_name_scope_ops(graph, "inner")) == ["inner/total"]
    assert ge.filter_ts_from_regex(graph, "^[ab]:") == [a, b]
    assert names(ge.get_consuming_ops([b])) == ["first", "inner/total"] and ge.get_generating_ops(b) == [b.op]
    assert ge.make_list_of_t([a, b.op], ignore_ops=True) == [a]
    for wrong, error in (((a, total.op), TypeError), ((a, 3), TypeError)):
        with pytest.raises(error):
            ge.make_list_of_t(wrong)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="several graphs"):
        ge.make_list_of_t([a, tf.constant(1.0)])


def test_tensors_with_other_inputs(line):
    a, b, c, total, product, negative = line
    other = tf.constant(10.0)
    new = ge.graph_replace({"product": product, "both": [negative, a]}, {a: other}, dst_scope="copy", src_scope="inner")
    assert new["both"][1] is other and new["product"].op.name == "copy/product"
    assert names(ge.get_name_scope_ops(tf.get_default_graph(), "copy")) == [
        "copy/negative",
        "copy/product",
        "copy/total",
    ]
    deeper = ge.graph_replace(negative, {total: other})
    assert deeper.op.name == "negative_1" and deeper.op.control_inputs == negative.op.control_inputs
    with tf.Session() as session:
        fed = {a: 1.0, b: 2.0, c: 3.0}
        assert session.run([product, new["product"], new["both"][0], deeper], fed) == [9, 36, -36, -30]
        assert session.run(tf.gradients(new["product"], other), fed) == [3]
    with pytest.raises(ValueError, match="not connected"):
        ge.graph_replace(total, {c: other})


def test_loops_and_variables_are_shared_by_copies():
    x, w = tf.placeholder(tf.float32, [2]), tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
    y = tf.while_loop(lambda i, _: i < 3, lambda i, value: (i + 1, value * w + x), [0, x])[1]
    other = ge.graph_replace(y, {x: tf.constant([1.0, 2.0])})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(other).tolist() == session.run(y, {x: [1, 2]}).tolist() == [15, 30]
    assert len(tf.global_variables()) == 1


def test_parts_of_a_graph(line):
    a, b, c, total, product, negative = line
    view = ge.sgv([total.op, product.op])
    assert view.inputs == [a, b, c] and view.outputs == [product] and view.consumers() == [negative.op]
    assert view and not ge.sgv() and ge.sgv(view) is view and view.op(1) is product.op
    graph = tf.get_default_graph()
    assert ge.sgv_scope("inner", graph).ops == [total.op] == ge.select_ops("inner/.*", graph=graph)
    assert ge.select_ts("[ab]:", graph=graph) == [a, b] and ge.sgv(product).ops == [product.op]
    assert ge.select_ops([total.op, product.op], positive_filter=lambda op: op.type == "Mul") == [product.op]
    with pytest.raises(ValueError, match="needs a graph"):
        ge.select_ops("inner/.*")


def test_copies_of_parts(line):
    a, _, c, total, product, _ = line
    copy, made = ge.copy_with_input_replacements([product.op, total.op], {a: tf.constant(10.0)}, dst_scope="copy")
    assert names(copy.ops) == ["copy/inner/total", "copy/product"]
    doubled = made.transformed(product)
    assert made.original(doubled) is product and made.transformed(c) is None and made.transformed(c, c) is c
    assert made.transformed([total.op, product.op]) == [doubled.op.inputs[0].op, doubled.op]
    with tf.Session() as session:
        assert session.run([product, doubled], {"a:0": 1.0, "b:0": 2.0, "c:0": 3.0}) == [9, 36]


def test_other_inputs(line):
    a, b, c, total, product, negative = line
    feeds = {a: 1.0, b: 2.0, c: 3.0}
    later = tf.identity(c * 10.0, "later")
    with tf.Session() as session:
        assert session.run(negative, feeds) == -9
        assert ge.reroute_ts([later], [total], cannot_modify=[product.op]) == 0
        assert ge.reroute_ts([later], [total], can_modify=[product.op]) == 1
        assert session.run(negative, feeds) == -90, "a step that was run before is made anew"
        assert session.run(tf.gradients(negative, c)[0], feeds) == -60, "an operation may take what is newer"
        ge.swap_ts([a], [b])
        assert session.run(total - 2.0 * a, feeds) == 1 and total.op.inputs == (b, a)
    with pytest.raises(ValueError, match="1 tensors to take, and 2"):
        ge.reroute_ts([a], [b, c])
    with pytest.raises(TypeError, match="int32"):
        ge.reroute_ts(tf.constant(1), a)


def test_control_inputs(line):
    *_, product, negative = line
    counter = tf.Variable(0)
    count = counter.assign_add(1)
    ge.add_control_inputs(negative.op, count.op)
    with pytest.raises(ValueError, match="already"):
        ge.add_control_inputs(negative.op, [count.op])
    with tf.Session() as session:
        session.run(counter.initializer)
        session.run(negative, {product: 1.0, "b:0": 1.0})
        assert session.run(counter) == 1
        ge.remove_control_inputs(negative.op, count.op)
        session.run(negative, {product: 1.0, "b:0": 1.0})
        assert session.run(counter) == 1
    with pytest.raises(ValueError, match="no control inputs"):
        ge.remove_control_inputs(negative.op, count.op)


def test_values_computed_again_for_gradients():
    """The first half is computed a second time for its gradients, as programs do that save memory."""
    x, w = tf.placeholder(tf.float32, [2, 2]), tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
    middle = tf.tanh(tf.matmul(x, w))
    loss = tf.reduce_sum(tf.square(tf.matmul(middle, w)))
    cut = tf.stop_gradient(middle)
    made = ge.copy_with_input_replacements(
        ge.get_forward_walk_ops(middle, within_ops=ge.get_backward_walk_ops(loss)), {}
    )
    ge.reroute_ts([cut], [middle], can_modify=made[1].transformed([*made[1]._transformed_ops]))
    d_cut, d_w = tf.gradients(made[1].transformed(loss), [cut, w])
    (d_first,) = tf.gradients(middle, w, grad_ys=d_cut)
    with tf.Session() as session:
        session.run(w.initializer)
        both = session.run([d_w + d_first, tf.gradients(loss, w)[0]], {x: [[0.1, 0.2], [0.3, 0.4]]})
    assert both[0] == pytest.approx(both[1])
