"""What notebooks show of graphs, tensors and results."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tfray as tf
from tests.support.processes import PATIENCE_S
from tfray.library.inspect import notebook
from tfray.training.trainer.step_history import StepHistory, StepRecord

SVG = "{http://www.w3.org/2000/svg}"


def parsed(html: str) -> ET.Element:
    """What a notebook is given, which must be well-formed and hold no script."""
    tree = ET.fromstring(html)
    assert not {"script", f"{SVG}script", f"{SVG}foreignObject"} & {each.tag for each in tree.iter()}
    assert not [name for each in tree.iter() for name in each.attrib if name.startswith("on") or "href" in name]
    return tree


def texts(tree: ET.Element) -> list[str]:
    return [each.text or "" for each in tree.iter(f"{SVG}text")]


def hints(tree: ET.Element) -> list[str]:
    """What the pointer shows on each box."""
    return [each.text or "" for each in tree.iter(f"{SVG}title")]


def folds(tree: ET.Element) -> dict[str, ET.Element]:
    return {fold.findtext("summary/b") or "": fold for fold in tree.iter("details")}


def test_a_graph_shows_its_operations_with_types_and_shapes(graph):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    tf.nn.relu(x, name="y")
    tree = parsed(graph._repr_html_())
    assert "x (Placeholder)\nfloat32 (?, 2)" in hints(tree) and "y (Relu)\nfloat32 (?, 2)" in hints(tree)
    assert {"x", "y"} <= set(texts(tree))
    assert len(list(tree.iter(f"{SVG}path"))) == 1  # from x to y


def test_scopes_fold_and_nest(graph):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.name_scope("outer"), tf.name_scope("inner"):
        deep = tf.negative(x, name="deep")
    tf.negative(deep, name="after")
    tree = parsed(graph._repr_html_())
    found = folds(tree)
    assert list(found) == ["graph", "outer/", "inner/"]
    assert found["graph"].get("open") and not found["outer/"].get("open")
    assert found["inner/"] in list(found["outer/"]) and found["outer/"] in list(found["graph"])
    own = found["graph"].find(f"{SVG}svg")
    assert own is not None and set(hints(own)) == {
        "x (Placeholder)\nfloat32 (2,)",
        "outer/",
        "after (Neg)\nfloat32 (2,)",
    }
    assert len(list(own.iter(f"{SVG}path"))) == 2  # x to the scope, the scope to what comes after it
    assert hints(found["inner/"]) == ["outer/inner/deep (Neg)\nfloat32 (2,)"]


def test_regions_are_folds_too(graph):
    x = tf.placeholder(tf.float32, [], name="x")
    tf.while_loop(lambda i: i < 10.0, lambda i: tf.square(i, name="more"), [x], name="loop")
    tree = parsed(graph._repr_html_())
    assert any("more (Square)" in hint or "/more (Square)" in hint for hint in hints(tree))
    assert sum(": " in name for name in folds(tree)) == 2


def test_constants_are_counted_and_not_drawn(graph):
    tf.add(tf.constant(1.0), tf.constant(2.0), name="sum")
    tree = parsed(graph._repr_html_())
    assert [hint.split(" ")[0] for hint in hints(tree)] == ["sum"]
    assert "3 operations, 2 of them constants" in "".join(tree.itertext())


def test_scopes_that_lead_to_one_another_are_drawn(graph):
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.name_scope("a") as a:
        first = tf.negative(x)
    with tf.name_scope("b"):
        second = tf.negative(first)
    with tf.name_scope(a):
        tf.negative(second)
    own = folds(parsed(graph._repr_html_()))["graph"].find(f"{SVG}svg")
    assert len(list(own.iter(f"{SVG}path"))) == 3


def test_text_is_escaped(graph):
    with tf.device("/job:w"):
        tf.placeholder(tf.float32, [], name="x")
    shown = notebook._text("<b>&\"'\x00")
    assert ET.fromstring(f"<i a='{shown}'>{shown}</i>").text == "<b>&\"'�"
    assert any("/job:w" in hint for hint in hints(parsed(graph._repr_html_())))


def test_empty_graphs_are_shown(graph):
    assert "0 operations" in "".join(parsed(graph._repr_html_()).itertext())


@pytest.mark.parametrize("layout", ["flat", "many scopes", "deep"])
def test_drawings_of_large_graphs_stay_small(graph, layout):
    x = tf.placeholder(tf.float32, [4])
    for number in range(2000):
        scope = {"flat": "", "many scopes": f"layer{number}/", "deep": f"{'s/' * (number % 60 + 1)}"}[layout]
        x = graph.add_operation("Neg", [x], name=f"{scope}neg_{number}", exact_name=True).outputs[0]
    html = graph._repr_html_()
    tree = parsed(html)
    assert len(html) < 1_000_000
    assert 0 < len(hints(tree)) <= notebook.MAX_BOXES_IN_ALL and len(folds(tree)) <= notebook.MAX_SCOPES
    assert "not drawn" in "".join(tree.itertext())


def test_tensors_and_operations_say_what_they_are(graph):
    x = tf.add(tf.zeros([2]), 1.0, name="add")
    assert repr(x) == "<tf.Tensor 'add:0' shape=(2,) dtype=float32>"
    assert repr(x.op) == "<tf.Operation 'add' type=Add>"


# -- results ---------------------------------------------------------------------------------------------------


def result(losses) -> tf.train.Result:
    history = StepHistory(StepRecord(step + 1, {"loss": loss}, 0.25) for step, loss in enumerate(losses))
    return tf.train.Result({"loss": losses[-1] if losses else math.nan}, history, {"w": np.zeros(2)}, 3, 1.5)


def curve(tree: ET.Element, panel: int) -> str:
    return "".join(path.get("d") or "" for path in list(tree.iter(f"{SVG}svg"))[panel].iter(f"{SVG}path"))


def test_a_result_shows_its_curves():
    tree = parsed(result([4.0, 2.0, 1.0])._repr_html_())
    assert "3 steps in 1.5 s, 3 late gradients dropped" in "".join(tree.itertext())
    assert {"loss: 1", "4", "milliseconds per step: 250"} <= set(texts(tree))
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", curve(tree, 0))]
    assert len(heights) == 3 and heights == sorted(heights)  # falling: SVG counts from the top


def test_curves_have_gaps_where_values_are_not_finite():
    path = curve(parsed(result([1.0, math.nan, 2.0, math.inf, 3.0])._repr_html_()), 0)
    assert path.count("M") == 3 and "nan" not in path and "inf" not in path


@pytest.mark.parametrize("losses", [[], [1.0], [math.nan]])
def test_short_runs_are_shown(losses):
    parsed(result(losses)._repr_html_())


def test_long_runs_show_as_many_points_as_a_panel_has_room_for():
    path = curve(parsed(result([float(step) for step in range(5000)])._repr_html_()), 0)
    assert path.count("L") < 400
    assert notebook.chosen(5000)[0] == 0 and notebook.chosen(5000)[-1] == 4999


# -- in a kernel of Jupyter ----------------------------------------------------------------------------

CELLS = [
    "import tfray as tf\nx = tf.negative(tf.placeholder(tf.float32, [2]), name='x')\nx",
    "x.graph",
    """
import numpy as np
from tfray.cli.progress import TrainingProgress

def model_fn(features, labels):
    loss = tf.reduce_mean(tf.square(features * tf.Variable(2.0) - labels))
    return tf.train.ModelSpec(loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss))

data = np.arange(8, dtype=np.float32)
with TrainingProgress(steps=5) as progress:
    run = tf.train.RunConfig(steps=5, local=True, on_step=progress.update)
    result = tf.train.Trainer(model_fn, tf.train.array_input(data, data, batch_size=4), run=run).fit()
""",
    "result",
]


@pytest.fixture(scope="module")
def outputs():
    """What a kernel shows of each cell."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")

    def executed(limit_s):
        program = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
        client = nbclient.NotebookClient(program, timeout=limit_s, startup_timeout=PATIENCE_S, kernel_name="python3")
        client.execute()
        return [cell.outputs for cell in program.cells]

    # ZeroMQ may not wake who waits for an answer that has come: it is seen when the limit of the cell is over.
    try:
        return executed(20)
    except nbclient.exceptions.CellTimeoutError:  # a cell may take longer on a busy machine
        return executed(PATIENCE_S)


def test_a_kernel_shows_tensors_and_draws_graphs(outputs):
    (tensor,), (graph,), *_ = outputs
    assert tensor["data"]["text/plain"] == "<tf.Tensor 'x:0' shape=(2,) dtype=float32>"
    assert "x (Neg)\nfloat32 (2,)" in hints(parsed(graph["data"]["text/html"]))


def test_a_kernel_shows_a_live_bar_of_progress_and_then_the_curves(outputs):
    pytest.importorskip("ipywidgets")
    *_, bar, (result,) = outputs
    assert any("application/vnd.jupyter.widget-view+json" in each.get("data", {}) for each in bar), bar
    assert "5 steps" in "".join(parsed(result["data"]["text/html"]).itertext())
