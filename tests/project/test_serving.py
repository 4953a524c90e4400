"""Saved models, of tfray and TensorFlow, behind Ray Serve."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from tests.support import ROOT
from tests.support.graphs.models_of_tensorflow import unpack_models
from tests.support.processes import PATIENCE_S

EXAMPLES = ROOT / "examples"


def ask(route, image):
    body = json.dumps({"image": image.tolist()}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:8123/{route}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read())


@pytest.mark.ray
@pytest.mark.slow
def test_concurrent_requests_get_the_values_of_whoever_saved_the_model(ray_local, monkeypatch, tmp_path):
    pytest.importorskip("fastapi")
    pytest.importorskip("sklearn")
    from ray import serve

    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES), prepend=":")
    import serve_model

    with np.load(unpack_models(tmp_path) / "digits" / "values.npz") as known:
        images_of_tensorflow, scores_of_tensorflow = known["image"], known["scores"]
    images, expected = serve_model.train_and_export(tmp_path / "model", steps=30)
    serve.start(http_options={"port": 8123})
    ray_local.cloudpickle.register_pickle_by_value(serve_model)  # the replica need not find the example
    try:
        serve.run(serve_model.Model.bind(str(tmp_path / "model")), name="own", route_prefix="/own")
        serve.run(serve_model.Model.bind(str(tmp_path / "digits" / "saved")), name="digits", route_prefix="/digits")
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(partial(ask, "own"), images[:64]))
            others = list(pool.map(partial(ask, "digits"), images_of_tensorflow))
        assert np.allclose([answer["scores"] for answer in answers], expected[:64], atol=1e-6)
        assert [answer["digit"] for answer in answers] == expected[:64].argmax(1).tolist()
        assert np.allclose([answer["scores"] for answer in others], scores_of_tensorflow, atol=1e-6)
        for route in ("own", "digits"):
            with pytest.raises(urllib.error.HTTPError, match="400"):
                ask(route, np.zeros(3))
    finally:
        serve.shutdown()
