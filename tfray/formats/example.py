"""`tf.train.Example` and what it is made of, compatible with TensorFlow on the wire."""

from __future__ import annotations

from tfray.formats.message import Field, Message


class BytesList(Message):
    """A list of byte strings: ``value``."""

    FIELDS = (Field(1, "value", "bytes", repeated=True),)


class FloatList(Message):
    """A list of float32: ``value``."""

    FIELDS = (Field(1, "value", "float", repeated=True),)


class Int64List(Message):
    """A list of int64: ``value``."""

    FIELDS = (Field(1, "value", "int64", repeated=True),)


class Feature(Message):
    """One feature of an example: one of ``bytes_list``, ``float_list`` and ``int64_list``."""

    FIELDS = (
        Field(1, "bytes_list", BytesList, oneof="kind"),
        Field(2, "float_list", FloatList, oneof="kind"),
        Field(3, "int64_list", Int64List, oneof="kind"),
    )


class Features(Message):
    """Features by name: the map ``feature``."""

    FIELDS = (Field(1, "feature", Feature, key="string"),)


class FeatureList(Message):
    """The values of a feature at each step of a sequence: ``feature``."""

    FIELDS = (Field(1, "feature", Feature, repeated=True),)


class FeatureLists(Message):
    """Sequences of features by name: the map ``feature_list``."""

    FIELDS = (Field(1, "feature_list", FeatureList, key="string"),)


class Example(Message):
    """One example: its ``features``."""

    FIELDS = (Field(1, "features", Features),)


class SequenceExample(Message):
    """One sequence: features of the whole in ``context``, of each step in ``feature_lists``."""

    FIELDS = (Field(1, "context", Features), Field(2, "feature_lists", FeatureLists))
