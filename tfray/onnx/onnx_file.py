"""Reading files of ONNX. They are data: what they declare is compared with what is there before memory is taken."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfray.errors import DataLossError, NotFoundError, PermissionDeniedError, UnimplementedError
from tfray.formats import files
from tfray.formats.declared_sizes import element_count
from tfray.formats.files import PathLike
from tfray.formats.mapped_file import MappedFile
from tfray.framework import dtypes
from tfray.onnx.onnx_types import dtype_of, onnx_package


class OnnxFile:
    """A file of ONNX, and the files with data beside it.

    Args:
        path: Where it is.

    Attributes:
        path: Where it is.
        model: The message that it holds.

    Raises:
        NotFoundError: There is no such file, or the package ``onnx`` is not installed.
        DataLossError: It holds no such message.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = files.given_path(path, "path")
        onnx = onnx_package()
        contents = files.read_bytes(self.path)
        try:
            self.model = onnx.ModelProto.FromString(contents)
        except Exception as error:  # protobuf's own errors differ by its implementation
            raise DataLossError(f"{self.path} is no file of ONNX: {error}") from error
        if not self.model.HasField("graph") or not self.model.opset_import:
            raise DataLossError(f"{self.path} is no file of ONNX: it has no graph, or names no operators")
        self._beside: dict[str, MappedFile] = {}

    def array(self, tensor: Any) -> np.ndarray[Any, Any]:
        """The array that a message describes; strings are bytes.

        Raises:
            ValueError: Its data are not those of its shape.
            DataLossError: Its data are in a file that is missing or too short.
            PermissionDeniedError: Its data are in a file that does not lie below the folder of this one.
        """
        onnx, dtype, shape = onnx_package(), dtype_of(tensor.data_type), tuple(tensor.dims)
        count = element_count(shape, dtype.size)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return self._external(tensor, count * dtype.size).view(dtype.numpy).reshape(shape)
        if tensor.HasField("raw_data") and dtype is not dtypes.string:
            if len(tensor.raw_data) != count * dtype.size:
                raise ValueError(f"tensor {tensor.name!r} has {len(tensor.raw_data)} bytes, not those of shape {shape}")
            return np.frombuffer(tensor.raw_data, dtype.numpy.newbyteorder("<")).astype(dtype.numpy).reshape(shape)
        data = getattr(tensor, onnx.helper.tensor_dtype_to_field(tensor.data_type))
        if len(data) != count * (2 if dtype.is_complex else 1):
            raise ValueError(f"tensor {tensor.name!r} has {len(data)} elements, not those of shape {shape}")
        if dtype is dtypes.string:
            array = np.empty(count, object)
            array[:] = list(data)
            return array.reshape(shape)
        return np.asarray(onnx.numpy_helper.to_array(tensor), dtype.numpy)

    def _external(self, tensor: Any, wanted: int) -> np.ndarray[Any, Any]:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", wanted))
        if offset < 0 or length != wanted:
            raise ValueError(f"tensor {tensor.name!r} has {length} bytes at {offset}, not the {wanted} of its shape")
        octets = self._file_beside(entries["location"]).octets(offset, length)
        if len(octets) != length:
            raise DataLossError(f"{self.path}: {entries['location']!r} ends before the data of {tensor.name!r}")
        return octets.copy()  # aligned to its elements

    def _file_beside(self, location: str) -> MappedFile:
        if location not in self._beside:
            parts = location.replace("\\", "/").split("/")
            if posixpath.isabs(location) or ".." in parts or ":" in location or not location.strip("./"):
                raise PermissionDeniedError(f"{self.path}: its data are at {location!r}, not below its folder")
            _, inner, prefix = files.locate(self.path)
            folder = os.path.dirname(inner) or ("." if not prefix else "")
            target = f"{folder}/{location}"
            if prefix in ("", "file://"):
                root, real = os.path.realpath(folder), os.path.realpath(target)
                if os.path.commonpath([root, real]) != root:
                    raise PermissionDeniedError(f"{self.path}: {location!r} is a link that leads out of its folder")
                if not os.path.isfile(real):
                    raise DataLossError(f"{self.path}: its data at {location!r} are missing")
            try:
                self._beside[location] = MappedFile(prefix + target)
            except NotFoundError as error:
                raise DataLossError(f"{self.path}: its data at {location!r} are missing") from error
        return self._beside[location]


def declared_shape(info: Any) -> Sequence[int | None] | None:
    """The sizes that the declaration of a value says, None for those that it leaves open; None for an unknown rank.

    Raises:
        UnimplementedError: It is no tensor.
    """
    if not info.type.HasField("tensor_type"):
        raise UnimplementedError(f"{info.name!r} is a sequence, a map or an optional value, which tfray has not")
    if not info.type.tensor_type.HasField("shape"):
        return None
    sizes = [size.dim_value if size.HasField("dim_value") else None for size in info.type.tensor_type.shape.dim]
    if any(size is not None and size < 0 for size in sizes):
        raise ValueError(f"{info.name!r} has sizes {sizes}")
    return sizes
