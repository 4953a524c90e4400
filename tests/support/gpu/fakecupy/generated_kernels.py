"""Kernels whose source tfray writes, run line by line with NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tests.support.gpu.fakecupy.arrays import ndarray, on_host, wrap
from tests.support.gpu.fakecupy.real_cupy import real
from tests.support.gpu.fakecupy.recording import recorder


class Lanes:
    """Consecutive elements of an array, from each of some indices on: of each thread its own.

    Raises:
        ValueError: An address is not one from which a GPU can load so many at once.
    """

    def __init__(self, array: np.ndarray, count: int, first: np.ndarray | None = None) -> None:
        self.values: dict[str, Any] = {}
        self.array, self.count = array, count
        if first is not None:
            self.values["loaded"] = array[_aligned(array, count, first) + np.arange(count)]

    def __getitem__(self, k: np.ndarray) -> np.ndarray:
        return self.values["loaded"][..., k]

    def __setitem__(self, k: np.ndarray, values: Any) -> None:
        self.values["stored"] = values


def _aligned(array: np.ndarray, count: int, first: Any) -> np.ndarray:
    first = np.asarray(first, np.int64)
    addresses = array.__array_interface__["data"][0] + first * array.itemsize
    if np.any(addresses % min(16, array.itemsize * count)):
        raise ValueError("CUDA_ERROR_MISALIGNED_ADDRESS")
    return first


def _store(array: np.ndarray, first: Any, lanes: Lanes) -> None:
    array[_aligned(array, lanes.count, first) + np.arange(lanes.count)] = lanes.values["stored"]


class ElementwiseKernel:
    """A kernel of a user's own, whose source is as `tfray.ops.kernels.gpu.device_loops` writes it.

    It runs section by section: an index array stands for the threads of one, so that each line is NumPy's.
    """

    FUNCTIONS: ClassVar[dict[str, Any]] = {
        "where": np.where,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "negative": np.negative,
        "absolute": np.absolute,
        "invert": np.logical_not,
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "quotient": np.floor_divide,
        "store": _store,
        **{f"load{n}": (lambda array, first, _n=n: Lanes(array, _n, first)) for n in (4, 8)},
        **{f"lanes{n}": (lambda array, _n=n: Lanes(array, _n)) for n in (4, 8)},
        **{name: getattr(np, name) for name in ("sqrt", "rint", "floor", "ceil", "exp", "log", "tanh", "power")},
        **{name: getattr(np, name) for name in ("exp2", "expm1", "log1p", "log2", "sin", "cos", "tan", "sinh", "cosh")},
        **{
            name: (lambda x, _type=_type: np.asarray(x).astype(_type)[()])
            for name, _type in {
                "bool_": np.bool_,
                **{n: np.dtype(n) for n in ("float32", "float64", "int32", "int64", "float16", "bfloat16")},
            }.items()
        },
    }

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel", *, preamble: str = ""
    ) -> None:
        real.ElementwiseKernel  # noqa: B018 (the name is there)
        self.name, self.lines = name, operation.split("\n")
        self.params = [text.split() for text in f"{in_params}, {out_params}".split(", ")]

    def __call__(self, *args: Any, size: int, block_size: int = 128) -> None:
        if len(args) != len(self.params):
            raise TypeError(f"Wrong number of arguments for {self.name!r}")
        recorder.call(self.name)
        if self.name in ("tfray_row_sums", "tfray_sums_along_rows"):
            _sum_rows([line.strip() for line in self.lines], self.params, args, block_size)
            return
        if self.name == "tfray_uniform":
            _draw(*args)
            return
        if self.name == "tfray_transposed":
            words, rows, columns, _, out = (on_host(value) for value in args)
            out.reshape(columns, rows)[...] = words.reshape(rows, columns).T
            return
        space: dict[str, Any] = dict(self.FUNCTIONS)
        for (*kind, dtype, name), value in zip(self.params, args, strict=True):
            if not kind:
                if isinstance(value, (ndarray, np.ndarray)):
                    raise ValueError("Specified size can be used only if all of the ndarray are 'raw'.")
                space[name] = np.dtype(dtype).type(value)
                continue
            host = on_host(value)
            if host.dtype != np.dtype(dtype):
                raise TypeError(f"Type is mismatched. {name} {host.dtype} {dtype}")
            is_written = name.startswith("out")
            if is_written and not host.flags.c_contiguous:
                raise RuntimeError("the stand-in stores to contiguous arrays alone")
            space[name] = host.reshape(-1)
        with np.errstate(all="ignore"):
            self._run(space, size)

    def _run(self, space: dict[str, Any], size: int) -> None:
        done = 0
        for line in self.lines:
            text = line.strip()
            if text.startswith("for "):
                space["k"] = np.arange(int(text.split("k < ")[1].split(";")[0]))
            elif text.endswith("{"):
                count = space[text.split("< ")[1].removesuffix(") {")]
                # Beside the threads, an axis for the elements of each.
                space["j"], done = np.arange(count)[:, None], done + int(count)
            elif text == "}" or text.endswith("j = i;"):
                continue
            elif "auto " in text:
                name, rest = text.removesuffix(";").split("auto ", 1)[1].split(" = ", 1)
                space[name] = eval(rest, space)
            elif text.startswith("const "):
                _, dtype, name, rest = text.removesuffix(";").split(" ", 3)
                space[name] = space[dtype](eval(rest.removeprefix("= "), space))
            else:
                exec(text.removesuffix(";"), space)
        if done != size:
            raise RuntimeError(f"the sections have {done} elements, and the kernel is launched for {size}")


def _draw(key0: int, key1: int, request: int, count: int, blocks: int, *rest: Any) -> None:
    """The kernel of `device_random`, by NumPy's own generator."""
    steps, width, low, out = rest
    flat = out._host.reshape(-1)
    for chunk, first in enumerate(range(0, count, 8 * blocks)):
        part = flat[first : first + 8 * blocks]
        bits = np.random.Philox(key=[key0, key1], counter=[0, 0, chunk, request])
        words = bits.random_raw(-(-part.size // 2)).view(np.uint32)[: part.size]
        numbers = (words >> 9).astype(np.float32) / np.float32(1 << 23)
        if steps:
            numbers = np.floor(numbers * steps) / steps
        part[...] = (numbers * width + low).astype(part.dtype)


def _sum_rows(lines: list[str], params: list[list[str]], args: Sequence[Any], threads: int) -> None:
    """The kernel of `device_sums`: its expressions are evaluated, and its rows cut, as its source says."""
    values = {name: value for (*_, name), value in zip(params, args, strict=True)}
    rows, columns, out = int(values["rows"]), int(values["columns"]), on_host(values["out"])
    space: dict[str, Any] = dict(ElementwiseKernel.FUNCTIONS)
    for line in lines:
        if ("run<" in line or "[0]" in line or "[row]" in line) and (
            found := re.search(r"(\w+)([0-9]+) = .*\bin\2\b", line)
        ):
            name = f"in{found[2]}"
            host = on_host(values[name])
            if "run<" in line:
                lanes = int(line.split("run<")[1].split(">")[0])
                _aligned(host.reshape(-1), lanes, np.arange(0, host.size, lanes))
            wide = host if host.dtype.char in "fd" else host.astype(np.float32)
            shape = (rows, columns) if "row *" in line else (rows, 1) if "[row]" in line else -1
            space[f"x{found[2]}"] = wide.reshape(shape)
    expressions = [line.split(" += ")[1].removesuffix(";") for line in lines if line.startswith("totals")]
    if "parts" not in values:
        for which, expression in enumerate(expressions):
            total = np.broadcast_to(eval(expression, space), (rows, columns)).sum(axis=1) * values["scale"]
            out.reshape(len(expressions), rows)[which] = total.astype(out.dtype)
        return
    parts = int(values["parts"])
    part_of_rows = np.arange(rows) // (threads // int(values["width"])) % parts
    for which, expression in enumerate(expressions):
        elements = np.broadcast_to(eval(expression, space), (rows, columns))
        for part in range(parts):
            total = elements[part_of_rows == part].sum(axis=0) * values["scale"]
            out.reshape(parts, len(expressions), columns)[part, which] = total.astype(out.dtype)


class ReductionKernel:
    """A sum of what an expression gives, as `tfray.ops.kernels.gpu.device_loops.device_sum` writes it."""

    def __init__(
        self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str, identity: str,
        name: str = "reduce", *, reduce_type: str = "", preamble: str = "",
    ) -> None:  # fmt: skip
        real.ReductionKernel  # noqa: B018 (the name is there)
        self.result, wide = np.dtype(out_params.split()[0]), {"float": np.float32, "double": np.float64}[reduce_type]
        last = "a * scale" if self.result == wide else f"{self.result.name}(a * scale)"
        if (reduce_expr, post_map_expr, identity) != ("a + b", f"total = {last}", "0"):
            raise NotImplementedError("the stand-in reduces by scaled sums alone")
        self.name, self.element = name, map_expr
        self.params = [text.split() for text in in_params.split(", ")]

    def __call__(self, *args: Any, axis: Any, keepdims: bool) -> ndarray:
        recorder.call(self.name)
        space: dict[str, Any] = dict(ElementwiseKernel.FUNCTIONS)
        for (dtype, name), value in zip(self.params, args, strict=True):
            host = on_host(value)
            if host.dtype != np.dtype(dtype):
                raise TypeError(f"Type is mismatched. {name} {host.dtype} {dtype}")
            space[name] = host
        with np.errstate(all="ignore"):
            total = np.sum(eval(self.element, space), axis=axis, keepdims=keepdims) * space["scale"]
            return wrap(np.asarray(total).astype(self.result))
