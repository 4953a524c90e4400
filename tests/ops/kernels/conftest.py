"""What tests of kernels share."""

import pytest

from tfray.ops.kernels.cpu_threads import thread_count, use_threads


@pytest.fixture(params=[1, 3])
def threads(request):
    """Kernels run with so many threads."""
    before = thread_count()
    use_threads(request.param)
    yield
    use_threads(before)
