#!/usr/bin/env bash
# Trains a small convolutional network on handwritten digits, on a Ray started for the purpose: two parameter shards and
# three workers, one of them a backup. Needs Python 3.11 and pip, nothing else; further arguments go to `tfray run`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh

environment=${TFRAY_VENV:-.venv-quickstart}
install_into "$environment" examples

# Five processes share this machine, and their matrices are small: one thread each.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

"$environment/bin/tfray" run examples/convnet.py:build \
  --address local --workers 3 --ps 2 --backup-workers 1 \
  --logdir runs/quickstart/tensorboard \
  --checkpoint-dir runs/quickstart/checkpoints --no-resume \
  --json runs/quickstart/history.json \
  --plot runs/quickstart/curves.png \
  --variables runs/quickstart/variables.npz \
  "$@"
