#!/usr/bin/env bash
# Runs the tests in a virtual environment of their own; arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh

environment=${TFRAY_VENV:-.venv-test}
install_into "$environment" "${TFRAY_EXTRA:-test}"

# Two threads are what kernels need to show that they share work; more would only fight with Ray's processes.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}

exec "$environment/bin/python" -m pytest "$@"
