"""Drawings of models in Graphviz's language DOT. Pictures are made of them by its program, where that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

from tfray.formats.files import failures_of


class Dot:
    """A drawing of boxes and arrows, in the language DOT."""

    def __init__(self, rankdir: str, dpi: int) -> None:
        self._lines = [f"rankdir={rankdir};", f"dpi={dpi};", "concentrate=true;", "node [shape=record];"]

    def box(self, name: str, label: str) -> None:
        """Draw a box with a text in it."""
        self._lines.append(f'{name} [label="{label}"];')

    def arrow(self, first: str, second: str) -> None:
        """Draw an arrow, once."""
        line = f"{first} -> {second};"
        if line not in self._lines:
            self._lines.append(line)

    def begin_frame(self, name: str, label: str) -> None:
        """Draw a frame around all that follows."""
        self._lines += [f"subgraph cluster_{name} {{", f'label="{label}";']

    def end_frame(self) -> None:
        """End it."""
        self._lines.append("}")

    def to_string(self) -> str:
        """The text."""
        return "\n".join(["digraph G {", *self._lines, "}", ""])

    def create(self, format: str = "png") -> bytes:
        """The picture, as bytes of a format that Graphviz knows. Raises `ImportError` without its program ``dot``."""
        program = shutil.which("dot")
        if program is None:
            raise ImportError(
                "pictures of models are made by Graphviz, whose program `dot` is not there: install Graphviz, or give "
                "a path that ends in .dot, for the text of the drawing"
            )
        done = subprocess.run(
            [program, f"-T{format}"], input=self.to_string().encode(), capture_output=True, check=True
        )
        return done.stdout

    def write(self, path: str, format: str | None = None) -> None:
        """Write it to a file: the text, or a picture in the format that the end of the path says."""
        kind = format or os.path.splitext(path)[1][1:].lower() or "png"
        data = self.to_string().encode() if kind in ("dot", "gv", "raw") else self.create(kind)
        with failures_of(path), open(path, "wb") as file:
            file.write(data)


def model_to_dot(
    model: Any,
    show_shapes: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 96,
    subgraph: bool = False,
) -> Dot:
    """A drawing of the layers of a model. Its `to_string` gives the text, its `write` makes a file.

    Args:
        model: The model.
        show_shapes: Whether boxes have the shapes of inputs and outputs.
        show_layer_names: Whether they have the names of layers, and not their classes alone.
        rankdir: ``TB`` for a drawing from top to bottom, ``LR`` for one from left to right.
        expand_nested: Whether models within the model are drawn, with frames around them.
        dpi: Dots for an inch of pictures.
        subgraph: Accepted for Keras's sake.
    """
    drawing = Dot(rankdir, dpi)
    _draw(drawing, model, show_shapes, show_layer_names, expand_nested)
    return drawing


def _draw(drawing: Dot, model: Any, shapes: bool, names: bool, nested: bool) -> tuple[str, str]:
    """Draw the layers of a model; the boxes at its begin and its end."""
    ends: dict[Any, tuple[str, str]] = {}
    for layer in model.layers:
        if nested and hasattr(layer, "_can_be_cloned") and layer.layers:
            drawing.begin_frame(_key(layer), layer.name)
            ends[layer] = _draw(drawing, layer, shapes, names, nested)
            drawing.end_frame()
        else:
            drawing.box(_key(layer), _label(layer, shapes, names))
            ends[layer] = _key(layer), _key(layer)
    for before, layer in model._connections():
        if before in ends and layer in ends:
            drawing.arrow(ends[before][1], ends[layer][0])
    return ends[model.layers[0]][0], ends[model.layers[-1]][1]


def _key(layer: Any) -> str:
    return str(id(layer))


def _label(layer: Any, shapes: bool, names: bool) -> str:
    kind = type(layer).__name__
    inner = getattr(layer, "layer", None)
    if inner is not None and hasattr(inner, "name"):
        kind = f"{kind}({inner.name if names else type(inner).__name__})"
    label = f"{layer.name}: {kind}" if names else kind
    if not shapes:
        return label
    try:
        sizes = [str(shape).replace("[", "(").replace("]", ")") for shape in (layer.input_shape, layer.output_shape)]
    except AttributeError:
        sizes = ["multiple", "multiple"]
    return f"{label}\\n|{{input:|output:}}|{{{{{sizes[0]}}}|{{{sizes[1]}}}}}"


def plot_model(
    model: Any,
    to_file: str = "model.png",
    show_shapes: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 96,
) -> None:
    """Write a drawing of a model to a file.

    Args:
        model: The model.
        to_file: The file: a picture in the format that its end says, or for ``.dot`` and ``.gv`` the text.
        show_shapes: As for `tf.keras.utils.model_to_dot`, like the arguments that follow.
        show_layer_names: Likewise.
        rankdir: Likewise.
        expand_nested: Likewise.
        dpi: Likewise.

    Raises:
        ImportError: It is to be a picture, and Graphviz is not installed.
    """
    model_to_dot(model, show_shapes, show_layer_names, rankdir, expand_nested, dpi).write(to_file)
