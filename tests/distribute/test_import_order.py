"""Packages are imported in any order."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes import PATIENCE_S


@pytest.mark.parametrize("module", ["contrib.tpu", "distribute.cluster_resolver", "estimator.run_config"])
def test_a_package_may_be_imported_first(module):
    subprocess.run([sys.executable, "-c", f"import tfray.{module}"], check=True, timeout=PATIENCE_S)
