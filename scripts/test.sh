#!/usr/bin/env bash
# Runs the tests in a virtual environment of their own; arguments, if there are any, go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh

environment=${TFRAY_VENV:-.venv-test}
install_into "$environment" "${TFRAY_EXTRA:-test}"

# Two threads are what kernels need to show that they share work; more would only fight with Ray's processes.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}

# A run in which something hangs ends itself (tests/support/hung_runs.py); this ends one that cannot even begin.
run_tests() {
    timeout --foreground --kill-after=60 15000 "$environment/bin/python" -m pytest "$@"
}

if [[ $# -gt 0 ]]; then
    run_tests "$@"
    exit
fi
failed=0
# Neighbours share what they prepare: each process begins with a row of them, and takes others' only when it has no more.
run_tests -n auto --dist worksteal -m "not slow and not ray" || failed=1
# Each process of tests on Ray has a Ray of its own. Their actors wait much of their time: three fill two processors.
# They need not collect what has no test on Ray.
mapfile -t on_ray < <(grep -rl --include='test_*.py' 'mark\.ray\b' tests | sort)
run_tests -n 3 --dist worksteal -m "ray and not slow" "${on_ray[@]}" || failed=1
exit $failed
