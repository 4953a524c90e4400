"""Products on a GPU of matrices in any layout. Where there is none, ``check.sh tests`` runs them on a stand-in."""

from __future__ import annotations

import numpy as np
import pytest

from tfray.ops.kernels.gpu.device_products import can_multiply, device_product
from tfray.runtime.device import cupy, gpu_count

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_count(), reason="needs a GPU")]

LEFT = {
    "heads": ((2, 5, 3, 4), lambda x: x.transpose(0, 2, 1, 3)),
    "heads, transposed": ((2, 4, 3, 5), lambda x: x.transpose(0, 2, 3, 1)),
    "every other matrix": ((4, 3, 5, 4), lambda x: x[::2]),
    "every other row and column": ((2, 3, 10, 8), lambda x: x[..., ::2, ::2]),
    "backwards": ((2, 3, 5, 4), lambda x: x[..., ::-1]),
    "one for all": ((1, 1, 5, 4), lambda x: x),
    "one for each row of the batch": ((2, 1, 5, 4), lambda x: x),
}
RIGHT = {
    "as it is": ((2, 3, 4, 6), lambda x: x),
    "heads": ((2, 4, 3, 6), lambda x: x.transpose(0, 2, 1, 3)),
    "heads, transposed": ((2, 6, 3, 4), lambda x: x.transpose(0, 2, 3, 1)),
}


@pytest.mark.parametrize("right", RIGHT)
@pytest.mark.parametrize("left", LEFT)
def test_batches_of_any_layout_are_multiplied(left, right):
    xp = cupy()
    assert can_multiply(xp, np.dtype(np.float32))
    factors = []
    for shape, view in (LEFT[left], RIGHT[right]):
        whole = np.random.default_rng(len(factors)).normal(size=shape).astype(np.float32)
        factors.append((view(whole), view(xp.asarray(whole))))
    (a, on_device), (b, other) = factors
    found = device_product(xp, on_device, other)
    np.testing.assert_allclose(found.get(), a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)
