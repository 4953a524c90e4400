"""`tf.contrib.graph_editor`: walks over a graph, and copies of parts of it with other inputs."""

from __future__ import annotations

import re

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
    assert ge.select_ts("[ab]:", graph=graph) == [a, b]
    through = ge.sgv([a, product])
    assert through.ops == [] and through.inputs == through.outputs == through.passthroughs == [a, product]
    both = ge.sgv(product.op, a)
    assert (both.inputs, both.outputs) == ([total, c, a], [product, a]) and both.is_passthrough(a)
    assert (both.connected_inputs, both.connected_outputs) == ([total, c], [product])
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
    with pytest.raises(ValueError, match=r"incompatible shapes: \(3,\) and "):
        ge.reroute_ts(tf.ones([3]), a)


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


# What follows has the values and names of TensorFlow 1.15.


def takes():
    """By the name of each operation, what it takes."""
    ops = tf.get_default_graph().get_operations()
    return {op.name: [tensor.op.name for tensor in op.inputs] for op in ops if op.inputs}


@pytest.fixture
def two():
    """``total = a + b``, ``product = total * c`` and ``negative``, and beside them ``u``, which is `x` itself."""
    a, b, c, x, y = (tf.placeholder(tf.float32, [], name) for name in "abcxy")
    with tf.name_scope("inner"):
        total = tf.add(a, b, "total")
    product = tf.multiply(total, c, "product")
    tf.negative(product, "negative")
    tf.identity(x, "u")
    tf.square(tf.negative(y, "w"), "z")
    return {op.name.rpartition("/")[2]: op for op in tf.get_default_graph().get_operations()}


BEFORE = {
    "inner/total": ["a", "b"],
    "product": ["inner/total", "c"],
    "negative": ["product"],
    "u": ["x"],
    "w": ["y"],
    "z": ["w"],
}


@pytest.mark.parametrize(
    ("edit", "after"),
    [
        (
            lambda op: ge.swap_inputs(op["total"], [op["x"].outputs[0], op["y"].outputs[0]]),
            {"inner/total": ["x", "y"], "u": ["a"], "w": ["b"]},
        ),
        (lambda op: ge.reroute_inputs(op["u"], op["negative"]), {"negative": ["x"]}),
        (
            lambda op: ge.swap_outputs(ge.sgv(op["total"]), ge.sgv(op["w"])),
            {"product": ["w", "c"], "z": ["inner/total"]},
        ),
        (lambda op: ge.reroute_outputs(ge.sgv(op["u"]), ge.sgv(op["total"])), {"product": ["u", "c"]}),
        (lambda op: ge.connect(ge.sgv(op["total"]), ge.sgv(op["z"])), {"z": ["inner/total"]}),
        (
            lambda op: ge.connect(ge.sgv(op["u"]), ge.sgv(op["product"]).remap_inputs([1])),
            {"product": ["inner/total", "u"]},
        ),
        (
            lambda op: ge.connect(op["total"], op["z"], disconnect_first=True),
            {"product": ["inner/geph__total_0", "c"], "z": ["inner/total"]},
        ),
        (lambda op: ge.swap_ios(op["negative"], op["w"]), {"negative": ["y"], "w": ["product"], "z": ["negative"]}),
        (lambda op: ge.reroute_ios(op["negative"], op["w"]), {"z": ["negative"], "w": ["product"]}),
        (lambda op: ge.bypass(ge.sgv(op["w"])), {"w": ["geph__y_0"], "z": ["y"]}),
    ],
    ids=[
        "swap inputs",
        "inputs",
        "swap outputs",
        "outputs",
        "connect",
        "one input",
        "disconnect",
        "swap",
        "both",
        "bypass",
    ],
)
def test_parts_with_other_inputs_and_outputs(two, edit, after):
    assert takes() == BEFORE
    views = edit(two)
    assert takes() == {**BEFORE, **after}
    assert isinstance(views[0], ge.SubGraphView)


def test_views_follow_their_inputs(two):
    a, b, x, y = (two[name].outputs[0] for name in "abxy")
    part, others = ge.swap_inputs(two["total"], [x, y])
    assert (part.inputs, part.passthroughs, part.outputs) == ([x, y], [x, y], [two["total"].outputs[0]])
    assert (others.inputs, others.outputs, others.passthroughs) == ([a, b], [a, b], [])


def test_parts_set_apart(two):
    view, before = ge.detach_inputs(ge.sgv(two["w"]))
    assert takes()["w"] == ["geph__y_0"] and view.inputs == before
    view, behind = ge.detach_outputs(ge.sgv(two["total"]))
    assert takes()["product"] == ["inner/geph__total_0", "c"] and [each.op.name for each in behind] == [
        "inner/geph__total_0"
    ]
    _, before, behind = ge.detach(ge.sgv(two["negative"]), control_inputs=True)
    assert [each.op.name for each in before] == ["geph__product_0"] and behind == []
    with tf.Session() as session:
        assert session.run("negative:0", {before[0]: 2.0}) == -2


def test_views(two):
    view = ge.sgv([two["total"], two["product"]])
    a, b, c = (two[name].outputs[0] for name in "abc")
    assert view.remap_inputs([2, a]).inputs == [c, a] and view.inputs == [a, b, c]
    assert view.remap([1], [0]).outputs == view.outputs and view.remap_outputs([]).outputs == []
    assert (view.input_index(c), view.output_index(view.outputs[0])) == (2, 0)
    assert view.find_op_by_name("product") is two["product"] and "** Inputs:\n  a:0" in str(view)
    with pytest.raises(ValueError, match="no operation 'x'"):
        view.find_op_by_name("x")
    with pytest.raises(ValueError, match="once each"):
        view.remap_inputs([0, 0])


def test_operations_within_a_boundary(two):
    graph = tf.get_default_graph()
    around = ["a", "b", "c", "inner/total", "negative", "product"]
    assert names(ge.get_within_boundary_ops(graph, [two["product"]])) == around
    bounds = [two["c"], two["total"]]
    assert names(ge.get_within_boundary_ops(graph, two["product"], bounds)) == around[2:]
    assert names(ge.get_within_boundary_ops(graph, two["product"], bounds, inclusive=False)) == around[4:]
    assert names(ge.get_ops_ios(two["total"])) == ["a", "b", "product"]
    with pytest.raises(ValueError, match="Boundary is intersecting with the seeds"):
        ge.get_within_boundary_ops(graph, two["c"], bounds)


def test_copies_in_other_graphs():
    a = tf.placeholder(tf.float32, [], "a")
    with tf.name_scope("in"):
        total = tf.add(a, 1.0, "t")
    last = tf.negative(total, "q")
    tf.add_to_collection("mine", last)
    tf.add_to_collection(tf.GraphKeys.LOSSES, total)
    whole, part = tf.Graph(), tf.Graph()
    view, made = ge.copy(tf.get_default_graph(), whole)
    assert names(view.ops) == ["a", "in/t", "in/t/y", "q"] and whole.get_collection("mine") == [made.transformed(last)]
    view, made = ge.copy(ge.sgv(last.op), part, dst_scope="d")
    assert names(part.get_operations()) == ["d/geph__t_0", "d/q"] and [each.name for each in view.inputs] == [
        "d/geph__t_0:0"
    ]
    assert part.get_collection("d/mine") == view.outputs == [made.transformed(last)]
    assert whole.get_collection(tf.GraphKeys.LOSSES) == [whole.get_tensor_by_name("in/t:0")]
    with tf.Session(graph=whole) as session:
        assert session.run("q:0", {"a:0": 2.0}) == -3
    with tf.Session(graph=part) as session:
        assert session.run(view.outputs, {view.inputs[0]: 4.0}) == [-4]
    other, _ = ge.copy_with_input_replacements(ge.sgv(last.op), {}, part)
    assert [each.name for each in other.inputs] == ["geph__t_0:0"]
    beside, _ = ge.copy(last.op, dst_scope="d")
    assert [each.name for each in beside.inputs] == ["d/geph__t_0:0"]


def test_names_of_placeholders(two):
    total = two["total"].outputs[0]
    found = [ge.placeholder_name(*given) for given in ((total,), (total, "x"), (total, ""), (), (None, "q"))]
    assert found == ["inner/geph__total_0", "x/geph__total_0", "geph__total_0", "geph", "q/geph"]
    given = ge.make_placeholder_from_dtype_and_shape(tf.int32, [2], scope="input")
    assert (given.name, given.shape.as_list()) == ("input/geph:0", [2])
    like = ge.make_placeholder_from_tensor(total)
    assert (like.name, like.dtype) == ("inner/geph__total_0:0", tf.float32)
    assert ge.placeholder_name(like) == "inner/geph__total_0"
    with pytest.raises(TypeError, match=r"expected a tf\.Tensor"):
        ge.placeholder_name("a")


def test_a_variable_read_in_the_place_of_a_constant():
    """As programs do that train a frozen graph again."""
    constant = tf.constant([1.0, 2.0], name="w")
    result = constant * 2.0
    variable = tf.get_variable("variable", initializer=[5.0, 6.0], use_resource=False)
    read = tf.get_default_graph().get_operation_by_name("variable/read")
    ge.swap_outputs(ge.sgv(constant.op), ge.sgv(read))
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(result).tolist() == [10, 12]
        assert session.run(tf.gradients(result, variable)[0]).tolist() == [2, 2]


def test_views_of_fewer_outputs():
    graph = tf.get_default_graph()
    a = tf.constant([1.0, 1.0], name="a")
    c = tf.add(a, tf.constant([2.0, 2.0], name="b"), name="c")
    e, f, g = tf.negative(c, "e"), tf.square(c, "f"), tf.abs(c, "g")
    h = tf.add(f, g, "h")
    view = ge.sgv(c.op).remap_outputs_to_consumers()
    assert view.outputs == [c] * 3 and view.remap_outputs_make_unique().outputs == [c]
    nothing = view.remap([], [])
    assert nothing.inputs == nothing.outputs == []
    assert (nothing.remap_default().outputs, nothing.remap_default().inputs) == ([c], list(c.op.inputs))
    whole = ge.sgv(graph)
    assert whole.outputs == [e, h]
    assert names(whole.remap_outputs([1]).remove_unused_ops().ops) == ["a", "b", "c", "f", "g", "h"]


def test_operations_no_longer_wait(line):
    a, *_, negative = line
    first = tf.get_default_graph().get_operation_by_name("first")
    waiting = ge.ControlOutputs(tf.get_default_graph())
    assert waiting.get_all() == {first: [negative.op]} and waiting.get(a.op) == ()
    with pytest.raises(TypeError, match="ControlOutputs"):
        ge.detach_control_outputs(ge.sgv(first), [first])
    ge.detach(ge.sgv(first), control_ios=waiting)
    assert negative.op.control_inputs == [] and first.inputs[0].op.name == "geph__b_0"
    assert waiting.update().get_all() == {}


def test_copies_that_are_transformed(line):
    _, _, c, total, product, negative = line
    tf.add_to_collection("totals", total)
    transformer = ge.Transformer()

    def with_noise(info, op, new_inputs):
        made, outputs = ge.transform.copy_op_handler(info, op, new_inputs)
        if op.type != "Mul":
            return made, outputs
        noisy = tf.add(outputs[0], 1.0, name="noisy")
        return noisy.op, noisy.op.outputs

    transformer.transform_op_handler = with_noise
    graph = tf.Graph()
    view, info = transformer(ge.sgv(total.op, product.op, negative.op), graph, "copy", "inner")
    assert {op.name: [tensor.op.name for tensor in op.inputs] for op in view.ops} == {
        "copy/total": ["copy/geph__a_0", "copy/geph__b_0"],
        "noisy": ["copy/product", "noisy/y"],
        "copy/negative": ["noisy"],
    }
    assert info.transformed(c, missing_fn=lambda tensor: tensor.name) == "c:0"
    assert graph.get_collection("copy/totals") == [info.transformed(total)]
    with tf.Session(graph=graph) as session:
        fed = dict(zip(view.inputs, (1.0, 2.0, 3.0), strict=True))
        assert session.run(view.outputs, fed) == [-10]
    transformer.transform_op_handler = lambda info, op, new_inputs: (op, op.outputs)
    with pytest.raises(ValueError, match="In-place"):
        transformer(ge.sgv(total.op), graph, "")
    with pytest.raises(TypeError, match=r"Expected a tf\.Graph"):
        transformer(ge.sgv(total.op), None, "")


def test_copies_of_other_attributes(line):
    *_, product, _negative = line

    def marked(node):
        node.attr["_mark"].s = b"b"
        return node

    transformer, graph = ge.Transformer(), tf.Graph()
    transformer.transform_op_handler = lambda info, op, new_inputs: ge.transform.copy_op_handler(
        info, op, new_inputs, copy_shape=True, nodedef_fn=marked if op.type == "Mul" else None
    )
    _, info = transformer(ge.sgv(product.op), graph, "")
    copied = info.transformed(product.op)
    assert copied.get_attr("_mark") == b"b" and copied.outputs[0].shape == []
    assert "_mark" not in product.op.attrs


def test_expressions():
    assert [ge.can_be_regex(each) for each in ("a", re.compile("a"), 3, None)] == [True, True, False, False]
    assert ge.make_regex("a+").pattern == "a+" and ge.make_regex(re.compile("b")).pattern == "b"
    for refused in (lambda: ge.make_regex(3), lambda: ge.filter_ops_from_regex(tf.get_default_graph(), 3)):
        with pytest.raises(ValueError, match="Expected a string or a regex"):
            refused()


def test_tensors_at_the_boundary(line):
    *_, total, product, negative = line
    wide = tf.multiply(total, product, "wide")
    found = ge.compute_boundary_ts([total.op, product.op])
    assert [[each.op.name for each in ts] for ts in found] == [
        ["a", "b", "c"],
        ["inner/total", "product"],
        ["inner/total"],
    ]
    found = ge.compute_boundary_ts([total.op, product.op, negative.op, wide.op])
    assert [[each.op.name for each in ts] for ts in found] == [
        ["a", "b", "c"],
        ["negative", "wide"],
        ["inner/total", "product"],
    ]
    with pytest.raises(TypeError):
        ge.compute_boundary_ts([3])


def test_which_control_dependencies_are_followed():
    control = ge.ControlOutputs(tf.get_default_graph())
    assert ge.check_cios() == (False, None)
    assert ge.check_cios(True) == (True, None)
    assert ge.check_cios(False, control) == (False, control)
    assert ge.check_cios(control_ios=control) == (True, control)
    first = tf.constant(1.0)
    with tf.control_dependencies([first]):
        second = tf.constant(2.0)
    ge.check_cios(control_ios=control)
    assert list(control.get(first.op)) == [second.op]
    with pytest.raises(TypeError, match=r"Expected a util\.ControlOutputs"):
        ge.check_cios(False, True)
    with pytest.raises(TypeError, match=r"Expected a util\.ControlOutputs"):
        ge.check_cios(control_ios=3)
    with pytest.raises(ValueError, match="should be None"):
        ge.check_cios(False, control, control)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_handlers(line, elsewhere):
    a, b, _, total, _, negative = line
    graph = tf.Graph() if elsewhere else tf.get_default_graph()
    for name in ("inner/things", "inner/things", "losses"):
        tf.add_to_collection(name, total)
    seen = []

    def op_handler(info, op, new_inputs):
        within = [ge.transform_op_if_inside_handler(info, negative.op, *keep) for keep in ((), (False,))]
        assert within == [None if elsewhere else negative.op, None]
        return ge.copy_op_handler(info, op, new_inputs)

    def input_handler(info, tensor):
        kept = ge.keep_t_if_possible_handler(info, tensor)
        seen.append((kept.name, ge.replace_t_with_placeholder_handler(info, tensor).name))
        return kept

    transformer = ge.Transformer()
    transformer.transform_op_handler = op_handler
    transformer.transform_external_input_handler = input_handler
    transformer.assign_collections_handler = ge.assign_renamed_collections_handler
    _, info = transformer(ge.sgv(total.op), graph, "copy", "inner")
    # As TensorFlow 1.15 names them.
    if elsewhere:
        assert seen == [(f"copy/geph__{each}_0:0", f"copy/geph__{each}_0_1:0") for each in "ab"]
    else:
        assert seen == [(each.name, f"copy/geph__{each.op.name}_0:0") for each in (a, b)]
    copied = info.transformed(total)
    assert graph.get_collection("copy/things") == [copied]
    assert graph.get_collection("losses") == ([copied] if elsewhere else [total, copied])
    with pytest.raises(TypeError, match="new_inputs"):
        ge.copy_op_handler(info, total.op, True)
