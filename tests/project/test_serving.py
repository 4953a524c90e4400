"""An exported convnet behind Ray Serve."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.support import ROOT

EXAMPLES = ROOT / "examples"


@pytest.mark.ray
@pytest.mark.slow
def test_concurrent_requests_get_the_training_graphs_values(ray_local, monkeypatch, tmp_path):
    pytest.importorskip("fastapi")
    pytest.importorskip("sklearn")
    from ray import serve

    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES), prepend=":")
    import serve_model

    images, expected = serve_model.train_and_export(tmp_path / "model", steps=30)
    serve.start(http_options={"port": 8123})
    ray_local.cloudpickle.register_pickle_by_value(serve_model)  # the replica need not find the example
    try:
        serve.run(serve_model.Digits.bind(str(tmp_path / "model")), name="digits", route_prefix="/digits")

        def ask(image):
            body = json.dumps({"image": image.tolist()}).encode()
            request = urllib.request.Request("http://127.0.0.1:8123/digits", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(ask, images[:64]))
        assert np.allclose([answer["scores"] for answer in answers], expected[:64], atol=1e-6)
        assert [answer["digit"] for answer in answers] == expected[:64].argmax(1).tolist()
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(np.zeros(3))
    finally:
        serve.shutdown()
