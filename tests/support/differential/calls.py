"""Calls of random programs: a public function, and arguments that fit tensors made before, or nearly fit.

Each function here takes a `Pool`, draws arguments, and returns the call; None if no tensor fits. About one call in
twenty has an argument that may be wrong (an axis beyond the rank, say): then both sides must refuse it, with the same
type of exception.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FLOATS = ("float32", "float64")
INTS = ("int32", "int64")
NUMBERS = (*FLOATS, *INTS)


@dataclass(frozen=True)
class Made:
    """A tensor of the program so far: its number, dtype, and static shape (None where unknown)."""

    number: int
    dtype: str
    shape: tuple[int | None, ...] | None


@dataclass
class Call:
    """One call of a public function. Among the arguments, ``{"tensor": n}`` is a tensor, ``{"dtype": name}`` a dtype.

    ``{"body": [calls], "given": [n], "result": n}`` is a function: its arguments get the numbers `given`.
    """

    function: str
    args: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


class Pool:
    """The tensors made so far, and the random choices."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.made: list[Made] = []

    def pick(self, fits: Callable[[Made], bool]) -> Made | None:
        """One that fits, later ones more often."""
        found = [each for each in self.made if each.shape is not None and fits(each)]
        if not found:
            return None
        place = len(found) - 1 - int(self.random.random() ** 2 * len(found))
        return found[place]

    def choose(self, values: Sequence[Any]) -> Any:
        """One of `values`."""
        return values[int(self.random.integers(len(values)))]

    def chance(self, share: float) -> bool:
        """True in this share of the calls."""
        return bool(self.random.random() < share)

    def of(self, dtypes: Sequence[str], rank: int | None = None, least: int = 0) -> Made | None:
        """One of these dtypes, of this rank, or of at least this rank."""
        return self.pick(
            lambda each: (
                each.dtype in dtypes and (len(each.shape) == rank if rank is not None else len(each.shape) >= least)
            )
        )

    def axis(self, rank: int) -> int:
        """An axis, sometimes one that does not exist."""
        if self.chance(0.02):
            return rank + int(self.random.integers(2))
        return int(self.random.integers(-rank, rank)) if rank else 0

    def axes(self, rank: int) -> Any:
        """None, one axis, or several."""
        kind = self.random.random()
        if kind < 0.3:
            return None
        if kind < 0.7 or rank < 2:
            return self.axis(rank)
        return sorted(int(axis) for axis in self.random.permutation(rank)[: int(self.random.integers(1, rank + 1))])

    def small(self, low: int, high: int) -> int:
        """A whole number."""
        return int(self.random.integers(low, high))


def ref(tensor: Made) -> dict[str, int]:
    """The tensor as an argument."""
    return {"tensor": tensor.number}


def known(tensor: Made) -> bool:
    """Whether its static shape is known, and small."""
    return None not in tensor.shape and math.prod(tensor.shape) <= 4096


Maker = Callable[[Pool], "Call | None"]


def unary(names: str, dtypes: Sequence[str]) -> list[Maker]:
    """Functions of one tensor."""

    def maker(name: str) -> Maker:
        def make(pool: Pool) -> Call | None:
            x = pool.of(dtypes)
            return x and Call(name, [ref(x)])

        return make

    return [maker(name) for name in names.split()]


def _broadcasts(a: Made, b: Made) -> bool:
    pairs = zip(a.shape[::-1], b.shape[::-1], strict=False)
    return all(x == y or 1 in (x, y) or None in (x, y) for x, y in pairs)


def binary(names: str, dtypes: Sequence[str]) -> list[Maker]:
    """Functions of two tensors of one dtype whose shapes broadcast, or, seldom, do not."""

    def maker(name: str) -> Maker:
        def make(pool: Pool) -> Call | None:
            x = pool.of(dtypes)
            if x is None:
                return None
            kind = pool.random.random()
            if kind < 0.15:
                numbers = [2, 1, 3, 0.5, -1.5] if x.dtype in FLOATS else [True] if x.dtype == "bool" else [2, 3, 1]
                return Call(name, [ref(x), pool.choose(numbers)])
            other = pool.pick(lambda each: each.dtype == x.dtype and (kind > 0.97 or _broadcasts(x, each)))
            return other and Call(name, [ref(x), ref(other)])

        return make

    return [maker(name) for name in names.split()]


def reduction(names: str, dtypes: Sequence[str]) -> list[Maker]:
    """Reductions along random axes."""

    def maker(name: str) -> Maker:
        def make(pool: Pool) -> Call | None:
            x = pool.of(dtypes)
            if x is None:
                return None
            options = {"keepdims": True} if pool.chance(0.3) else {}
            return Call(name, [ref(x), pool.axes(len(x.shape))], options)

        return make

    return [maker(name) for name in names.split()]


def _along(name: str, dtypes: Sequence[str], keyword: str = "axis", **choices: Sequence[Any]) -> Maker:
    def make(pool: Pool) -> Call | None:
        x = pool.of(dtypes, least=1)
        if x is None:
            return None
        options = {key: pool.choose(values) for key, values in choices.items()}
        return Call(name, [ref(x)], {keyword: pool.axis(len(x.shape)), **options})

    return make


def reshape(pool: Pool) -> Call | None:
    x = pool.pick(known)
    if x is None:
        return None
    left, sizes = int(np.prod(x.shape)), []
    while left > 1 and len(sizes) < 4 and not pool.chance(0.2):
        sizes.append(pool.choose([n for n in range(1, left + 1) if left % n == 0][:8]))
        left //= sizes[-1]
    sizes.append(-1 if pool.chance(0.4) and np.prod(x.shape) else left)
    if pool.chance(0.03):
        sizes.append(2)
    return Call("reshape", [ref(x), sizes])


def transpose(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: True)
    if x is None:
        return None
    return Call("transpose", [ref(x)] + ([] if pool.chance(0.3) else [pool.random.permutation(len(x.shape)).tolist()]))


def concat(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: bool(each.shape))
    if x is None:
        return None
    axis = pool.axis(len(x.shape))
    place = axis % len(x.shape)

    def fits(each: Made) -> bool:
        if each.dtype != x.dtype or len(each.shape) != len(x.shape):
            return False
        return all(a == b for i, (a, b) in enumerate(zip(x.shape, each.shape, strict=True)) if i != place)

    others = [pool.pick(fits) for _ in range(pool.small(1, 3))]
    return Call("concat", [[ref(x), *(ref(each) for each in others if each)], axis])


def stack(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: len(each.shape) < 4)
    if x is None:
        return None
    others = [pool.pick(lambda each: each.dtype == x.dtype and each.shape == x.shape) for _ in range(pool.small(0, 3))]
    return Call("stack", [[ref(x), *(ref(each) for each in others if each)]], {"axis": pool.axis(len(x.shape) + 1)})


def split(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: bool(each.shape) and known(each))
    if x is None:
        return None
    axis = pool.axis(len(x.shape))
    size = x.shape[axis % len(x.shape)]
    parts: Any = pool.choose([n for n in range(1, 5) if size % n == 0 or pool.chance(0.02)])
    if pool.chance(0.3) and size > 1:
        cut = pool.small(0, size + 1)
        parts = [cut, size - cut]
    return Call("split", [ref(x), parts, axis])


def getitem(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: bool(each.shape) and known(each))
    if x is None:
        return None
    items: list[Any] = []
    for size in x.shape[: pool.small(1, len(x.shape) + 1)]:
        kind = pool.random.random()
        if kind < 0.25 and size:
            items.append(pool.small(-size, size))
        elif kind < 0.32:
            items.append("newaxis")
        else:
            step = pool.choose([None, None, 1, 2, -1])
            bounds = [pool.choose([None, pool.small(-size - 1, size + 2)]) for _ in range(2)]
            items.append({"slice": [*bounds, step]})
    if pool.chance(0.15):
        items.insert(pool.small(0, len(items) + 1), "...")
    return Call("getitem", [ref(x), items])


def gather(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: bool(each.shape) and known(each) and 0 not in each.shape)
    if x is None:
        return None
    axis = pool.small(0, len(x.shape))
    count = x.shape[axis] + (2 if pool.chance(0.03) else 0)
    indices = pool.random.integers(0, count, pool.choose([(), (2,), (2, 2)])).tolist()
    return Call("gather", [ref(x), indices], {"axis": axis} if axis or pool.chance(0.5) else {})


def gather_nd(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: bool(each.shape) and known(each) and 0 not in each.shape)
    if x is None:
        return None
    depth = pool.small(1, len(x.shape) + 1)
    rows = [[pool.small(0, size) for size in x.shape[:depth]] for _ in range(pool.small(1, 4))]
    return Call("gather_nd", [ref(x), rows])


def pad(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: bool(each.shape) and each.dtype in NUMBERS)
    if x is None:
        return None
    widths = [[pool.small(0, 3), pool.small(0, 3)] for _ in x.shape]
    return Call("pad", [ref(x), widths], {"mode": pool.choose(["CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC"])})


def tile(pool: Pool) -> Call | None:
    x = pool.pick(known)
    return x and Call("tile", [ref(x), [pool.small(0 if pool.chance(0.1) else 1, 3) for _ in x.shape]])


def expand_dims(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: len(each.shape) < 5)
    return x and Call("expand_dims", [ref(x), pool.axis(len(x.shape) + 1)])


def reverse(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: bool(each.shape))
    return x and Call("reverse", [ref(x), [pool.axis(len(x.shape))]])


def squeeze(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: 1 in each.shape or pool.chance(0.05))
    if x is None:
        return None
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    return Call("squeeze", [ref(x)], {"axis": [pool.choose(ones)]} if ones and pool.chance(0.5) else {})


def cast(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: each.dtype in (*NUMBERS, "bool", "uint8"))
    return x and Call("cast", [ref(x), {"dtype": pool.choose([*NUMBERS, "bool", "uint8", "complex64", "float16"])}])


def where(pool: Pool) -> Call | None:
    condition = pool.of(("bool",))
    if condition is None:
        return None
    if pool.chance(0.3):
        return Call("where", [ref(condition)])
    x = pool.pick(lambda each: each.shape == condition.shape)
    y = x and pool.pick(lambda each: each.shape == x.shape and each.dtype == x.dtype)
    return y and Call("where", [ref(condition), ref(x), ref(y)])


def one_hot(pool: Pool) -> Call | None:
    x = pool.of((*INTS, "uint8"))
    if x is None:
        return None
    options = {"dtype": {"dtype": "int32"}} if pool.chance(0.2) else {}
    return Call("one_hot", [ref(x), pool.small(0, 5)], {"axis": pool.choose([-1, 0]), **options})


def matmul(pool: Pool) -> Call | None:
    x = pool.of((*FLOATS, "int32"), least=2)
    if x is None:
        return None
    flip, turn = pool.chance(0.3), pool.chance(0.3)
    inner = x.shape[-2] if flip else x.shape[-1]

    def fits(each: Made) -> bool:
        if each.dtype != x.dtype or len(each.shape) != len(x.shape) or each.shape[:-2] != x.shape[:-2]:
            return False
        return each.shape[-1 if turn else -2] == inner or pool.chance(0.01)

    y = pool.pick(fits)
    return y and Call("matmul", [ref(x), ref(y)], {"transpose_a": flip, "transpose_b": turn})


def tensordot(pool: Pool) -> Call | None:
    x = pool.of(FLOATS, least=1)
    y = x and pool.pick(lambda each: each.dtype == x.dtype and each.shape and each.shape[0] == x.shape[-1])
    return y and Call("tensordot", [ref(x), ref(y), 1])


def top_k(pool: Pool) -> Call | None:
    x = pool.of(NUMBERS, least=1)
    return x and Call("nn.top_k", [ref(x), pool.small(1, (x.shape[-1] or 1) + 1)])


def segment(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: each.dtype in NUMBERS and bool(each.shape) and each.shape[0] not in (None, 0))
    if x is None:
        return None
    name = pool.choose(["sum", "max", "min", "prod", "mean"])
    if pool.chance(0.5):
        ids = np.sort(pool.random.integers(0, 3, x.shape[0])).tolist()
        return Call(f"segment_{name}", [ref(x), ids])
    return Call(f"unsorted_segment_{name}", [ref(x), pool.random.integers(-1, 3, x.shape[0]).tolist(), 4])


def scatter_nd(pool: Pool) -> Call | None:
    x = pool.pick(
        lambda each: each.dtype in NUMBERS and bool(each.shape) and each.shape[0] not in (None, 0) and known(each)
    )
    if x is None:
        return None
    indices = pool.random.integers(0, 4, (x.shape[0], 1)).tolist()
    return Call("scatter_nd", [indices, ref(x), [4, *x.shape[1:]]])


def convolution(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: each.dtype in FLOATS and len(each.shape) == 4 and known(each) and 0 not in each.shape)
    if x is None:
        return None
    depth = x.shape[3]
    filters = {"array": [pool.small(1, 4), pool.small(1, 4), depth, pool.small(1, 4)], "of": x.dtype}
    step = pool.small(1, 3)
    options = {"strides": [1, step, step, 1], "padding": pool.choose(["SAME", "VALID"])}
    kind = pool.choose(["nn.conv2d", "nn.depthwise_conv2d", "nn.max_pool", "nn.avg_pool"])
    if kind.endswith("pool"):
        return Call(kind, [ref(x), [1, pool.small(1, 4), pool.small(1, 4), 1]], options)
    if kind == "nn.conv2d" and step == 1 and pool.chance(0.3):
        options["dilations"] = [1, 2, 2, 1]
    return Call(kind, [ref(x), filters], options)


def cross_entropy(pool: Pool) -> Call | None:
    x = pool.of(FLOATS, rank=2)
    if x is None or None in x.shape or 0 in x.shape:
        return None
    if pool.chance(0.5):
        labels = pool.random.integers(0, x.shape[1], x.shape[0]).tolist()
        return Call("nn.sparse_softmax_cross_entropy_with_logits", [], {"labels": labels, "logits": ref(x)})
    y = pool.pick(lambda each: each.dtype == x.dtype and each.shape == x.shape)
    name = pool.choose(["nn.softmax_cross_entropy_with_logits", "nn.sigmoid_cross_entropy_with_logits"])
    return y and Call(name, [], {"labels": ref(y), "logits": ref(x)})


def square_matrix(pool: Pool) -> Call | None:
    x = pool.pick(lambda e: e.dtype in FLOATS and len(e.shape) >= 2 and e.shape[-1] == e.shape[-2] and known(e))
    name = pool.choose(["diag_part", "matrix_diag_part", "trace", "matrix_transpose", "linalg.tensor_diag_part"])
    return x and Call(name, [ref(x)])


def image(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: each.dtype == "float32" and len(each.shape) == 4 and known(each) and 0 not in each.shape)
    if x is None:
        return None
    kind = pool.choose(
        ["resize_bilinear", "resize_nearest_neighbor", "flip_left_right", "flip_up_down", "transpose_image"]
    )
    if kind.startswith("resize"):
        return Call(
            f"image.{kind}", [ref(x), [pool.small(1, 6), pool.small(1, 6)]], {"align_corners": pool.chance(0.5)}
        )
    return Call(f"image.{kind}", [ref(x)])


def blocks(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: len(each.shape) == 4 and known(each))
    return x and Call(pool.choose(["space_to_depth", "depth_to_space"]), [ref(x), 2])


def bias_add(pool: Pool) -> Call | None:
    x = pool.of(FLOATS, least=2)
    y = x and pool.pick(lambda each: each.dtype == x.dtype and len(each.shape) == 1 and each.shape[0] == x.shape[-1])
    return y and Call("nn.bias_add", [ref(x), ref(y)])


def broadcast_to(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: known(each) and len(each.shape) < 4)
    if x is None:
        return None
    shape = [pool.small(1, 4) if size == 1 else size for size in x.shape]
    return Call("broadcast_to", [ref(x), [pool.small(1, 3)] * pool.small(0, 2) + shape])


def clip(pool: Pool) -> Call | None:
    x = pool.of(FLOATS)
    if x is None:
        return None
    if pool.chance(0.5):
        return Call("clip_by_value", [ref(x), -0.5, 0.75])
    return Call("clip_by_norm", [ref(x), 1.5])


def complex_of(pool: Pool) -> Call | None:
    x = pool.of(FLOATS)
    y = x and pool.pick(lambda each: each.dtype == x.dtype and each.shape == x.shape)
    return y and Call("complex", [ref(x), ref(y)])


def branch(pool: Pool) -> Call | None:
    chosen, x = pool.of(("bool",), rank=0), pool.of(FLOATS)
    if x is None:
        return None
    inner = [pool.choose(["tanh", "negative", "square", "sigmoid"]) for _ in range(2)]
    bodies = [{"body": [Call(name, [ref(x)])], "given": [], "result": -1} for name in inner]
    return Call("cond", [ref(chosen) if chosen else {"array": [], "of": "bool"}, *bodies])


def loop(pool: Pool) -> Call | None:
    x = pool.of(FLOATS)
    y = x and pool.pick(lambda each: each.dtype == x.dtype and each.shape == x.shape)
    if y is None:
        return None
    name = pool.choose(["add", "multiply", "maximum", "subtract"])
    condition = {"body": [Call("less", [{"given": 0}, pool.small(0, 4)])], "given": 2, "result": -1}
    body = {
        "body": [Call("add", [{"given": 0}, 1]), Call(name, [{"given": 1}, ref(y)]), Call("tanh", [{"result": 1}])],
        "given": 2,
        "result": [0, 2],
    }
    return Call("while_loop", [condition, body, [0, ref(x)]])


def mapped(pool: Pool) -> Call | None:
    x = pool.pick(lambda each: each.dtype in FLOATS and bool(each.shape) and each.shape[0] not in (None, 0))
    if x is None:
        return None
    if pool.chance(0.5):
        return Call(
            "map_fn",
            [{"body": [Call(pool.choose(["tanh", "square"]), [{"given": 0}])], "given": 1, "result": -1}, ref(x)],
        )
    body = {"body": [Call("add", [{"given": 0}, {"given": 1}]), Call("sin", [{"result": 0}])], "given": 2, "result": -1}
    return Call(pool.choose(["scan", "foldl", "foldr"]), [body, ref(x)])


MAKERS: list[Maker] = [
    *unary("abs negative sign square identity zeros_like ones_like", NUMBERS),
    *unary(
        "exp tanh sigmoid sin cos tan atan sinh cosh asinh expm1 math.softplus erf erfc rint floor ceil round", FLOATS
    ),
    *unary("nn.relu nn.relu6 nn.elu nn.selu nn.softsign nn.softplus nn.leaky_relu nn.l2_loss nn.zero_fraction", FLOATS),
    *unary("sqrt log log1p rsqrt reciprocal lgamma digamma asin acos atanh is_nan is_inf is_finite", FLOATS),
    *unary("shape size rank", (*NUMBERS, "bool", "complex64", "float16", "uint8")),
    *unary("logical_not", ("bool",)),
    *unary("real imag conj angle abs", ("complex64", "complex128")),
    *unary("nn.relu nn.softmax sqrt exp negative", ("float16",)),
    *binary("add subtract multiply maximum minimum squared_difference", (*NUMBERS, "float16")),
    *binary("divide truediv floordiv mod div_no_nan pow atan2", FLOATS),
    *binary("floordiv floormod truncatediv truncatemod divide", INTS),
    *binary("__add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __lt__ __ge__", NUMBERS),
    *binary("equal not_equal less less_equal greater greater_equal", NUMBERS),
    *binary("logical_and logical_or logical_xor", ("bool",)),
    *binary("bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor", INTS),
    *binary("add multiply divide", ("complex64",)),
    *reduction("reduce_sum reduce_mean reduce_max reduce_min reduce_prod", NUMBERS),
    *reduction("reduce_logsumexp norm", FLOATS),
    *reduction("reduce_all reduce_any", ("bool",)),
    *[_along(name, NUMBERS) for name in ("argmax", "argmin")],
    *[_along(name, NUMBERS, exclusive=[True, False], reverse=[True, False]) for name in ("cumsum", "cumprod")],
    *[_along(name, FLOATS) for name in ("nn.softmax", "nn.log_softmax", "nn.l2_normalize", "unstack")],
    _along("sort", NUMBERS, direction=["ASCENDING", "DESCENDING"]),
    reverse,
    *[reshape, transpose, concat, stack, split, getitem, getitem, gather, gather_nd, pad, tile, expand_dims, squeeze],
    *[cast, cast, where, one_hot, matmul, matmul, tensordot, top_k, segment, scatter_nd, convolution, convolution],
    *[cross_entropy, square_matrix, image, blocks, bias_add, broadcast_to, clip, complex_of, branch, loop, mapped],
]
