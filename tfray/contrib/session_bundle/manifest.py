"""TensorFlow Serving's messages about exported models: inputs and outputs by name, and files."""

from __future__ import annotations

from typing import Final

from tfray.formats.message import Field, Message

PACKAGE: Final = "tensorflow.serving"
"""TensorFlow's package of these messages."""

# fmt: off
__all__ = [
    "AssetFile", "ClassificationSignature", "GenericSignature", "RegressionSignature", "Signature", "Signatures",
    "TensorBinding",
]
# fmt: on


class TensorBinding(Message):
    """The name of a tensor."""

    FIELDS = (Field(1, "tensor_name", "string"),)


class AssetFile(Message):
    """A file in the folder of assets, and the tensor that is its path."""

    FIELDS = (Field(1, "tensor_binding", TensorBinding), Field(2, "filename", "string"))


class RegressionSignature(Message):
    """A function from examples to numbers."""

    FIELDS = (Field(1, "input", TensorBinding), Field(2, "output", TensorBinding))


class ClassificationSignature(Message):
    """A function from examples to classes and their scores."""

    FIELDS = (Field(1, "input", TensorBinding), Field(2, "classes", TensorBinding), Field(3, "scores", TensorBinding))


class GenericSignature(Message):
    """Tensors by name."""

    FIELDS = (Field(1, "map", TensorBinding, key="string"),)


class Signature(Message):
    """One of the three kinds."""

    FIELDS = (
        Field(1, "regression_signature", RegressionSignature, oneof="type"),
        Field(2, "classification_signature", ClassificationSignature, oneof="type"),
        Field(3, "generic_signature", GenericSignature, oneof="type"),
    )


class Signatures(Message):
    """The signature of a model, and those with names."""

    FIELDS = (Field(1, "default_signature", Signature), Field(2, "named_signatures", Signature, key="string"))
