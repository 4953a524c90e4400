"""Hyperparameters from text, with what TensorFlow 1.15 accepts and refuses."""

from __future__ import annotations

import pytest

import tfray as tf
from tfray.training.sessions.hparams import HParams, parse_values


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        (
            "a=1,b=-2e3, c=relu6,d=",
            {"a": int, "b": float, "c": str, "d": str},
            {"a": 1, "b": -2e3, "c": "relu6", "d": ""},
        ),
        ("path=/a/b=c,x=[1, 2 3]", {"path": str, "x": int}, {"path": "/a/b=c", "x": [1, 2, 3]}),
        ("a.b=1.5,c..=2", {"a.b": float, "c..": int}, {"a.b": 1.5, "c..": 2}),
        ("on=True,off=0", {"on": bool, "off": bool}, {"on": True, "off": False}),
        ("x[3]=1,y=2,x[ 0 ]=5", {"x": int, "y": int}, {"x": {3: 1, 0: 5}, "y": 2}),
    ],
)
def test_values_are_read_from_text(text, types, expected):
    assert parse_values(text, types) == expected


def test_unknown_names_are_left_out_when_asked():
    assert parse_values("a=1,b=[2],c[1]=3", {"a": int}, ignore_unknown=True) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("b=1", "Unknown hyperparameter type for b"),
        ("a", "Malformed hyperparameter value: a"),
        ("a=1.0", "Could not parse hparam 'a' of type 'int' with value '1.0'"),
        ("on=yep", "Could not parse hparam 'on'"),
        ("a=1,a=2", "Multiple assignments to variable 'a'"),
        ("a[0]=1,a[0]=2", r"Multiple assignments to variable 'a\[0\]'"),
        ("a=[1],a[0]=2", "Multiple assignments to variable 'a'"),
        ("a[0]=[1]", "Assignment of a list to a list index"),
    ],
)
def test_text_that_is_refused(text, match):
    with pytest.raises(ValueError, match=match):
        parse_values(text, {"a": int, "on": bool})


def test_values_keep_the_types_of_their_defaults():
    hparams = tf.contrib.training.HParams(rate=0.1, layers=[8, 8], name="x", deep=True, free=None)
    hparams.parse("rate=2,layers[3]=4,deep=false").override_from_dict({"name": "y", "free": "anything"})
    assert hparams.values() == {"rate": 2.0, "layers": [8, 8, 8, 4], "name": "y", "deep": False, "free": "anything"}
    assert isinstance(hparams.rate, float) and str(HParams(b=1, a="x")) == "[('a', 'x'), ('b', 1)]"
    hparams.rate = "an attribute is set as it is"
    assert hparams.rate.startswith("an attribute")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("layers", 8, "Must pass a list for multi-valued parameter: layers"),
        ("rate", [0.1], "Must not pass a list for single-valued parameter: rate"),
        ("rate", "0.1", "Could not cast hparam 'rate' of type 'float'"),
        ("count", 2.0, "Could not cast hparam 'count' of type 'int'"),
        ("count", True, "Could not cast hparam 'count' of type 'int'"),
        ("deep", 1, "Could not cast hparam 'deep' of type 'bool'"),
        ("name", 1, "Could not cast hparam 'name' of type 'str'"),
    ],
)
def test_values_of_other_types_are_refused(name, value, match):
    hparams = HParams(rate=0.1, layers=[8], count=3, deep=True, name="x")
    with pytest.raises(ValueError, match=match):
        hparams.set_hparam(name, value)


def test_defaults_are_of_the_type_of_the_hyperparameter():
    hparams = HParams(rate=0.1, layers=[8])
    assert (hparams.get("rate", 1.0), hparams.get("none"), hparams.get("none", 4)) == (0.1, None, 4)
    for name, default in (("rate", [0.1]), ("layers", 8), ("rate", "0.1")):
        with pytest.raises(ValueError):
            hparams.get(name, default)
    with pytest.raises(ValueError, match="Hyperparameter name is reserved: parse"):
        hparams.add_hparam("parse", 1)
    with pytest.raises(ValueError, match="Multi-valued hyperparameters cannot be empty: e"):
        hparams.add_hparam("e", [])
