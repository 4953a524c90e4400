#!/usr/bin/env bash
# Use: check.sh [ops|gradients|session|models|launches|static|tests|whole ...] [--xp fake|cupy] [OPTION ...]
#
# Sets up what is needed (setup.sh), runs the checks, and prints tables and a last line `N agree, M fail`.
# Ends with 1 if any fail or nothing was there to check. `check.sh --help` explains the options.
set -euo pipefail

kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$kit/../../.." && pwd)
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} PYTHONDONTWRITEBYTECODE=1
if [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; then
    cd "$project"
    exec python3 -m tests.support.gpu.run --help
fi

python=$("$kit/setup.sh")
cd "$project"
PYTHONPATH=$project${PYTHONPATH:+:$PYTHONPATH} exec "$python" -m tests.support.gpu.run "$@"
