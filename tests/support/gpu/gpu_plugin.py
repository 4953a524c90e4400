"""A pytest plugin, `-p tests.support.gpu.gpu_plugin`: the sessions of tests find a GPU.

GPU_XP says which one: fake (default) or cupy.
"""

from __future__ import annotations

import os

from tests.support.gpu.pretend import open_gpu

open_gpu(os.environ.get("GPU_XP", "fake"))
