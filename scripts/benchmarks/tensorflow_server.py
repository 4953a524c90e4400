"""One task of a TensorFlow cluster: serves until its standard input ends."""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow.compat.v1 as tf


def main() -> None:
    spec, job, task = json.loads(sys.argv[1])
    server = tf.train.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=task, protocol="grpc")
    print("serving", server.target, flush=True)
    sys.stdin.read()
    os._exit(0)  # servers cannot be stopped otherwise


if __name__ == "__main__":
    main()
