"""What connects a graph to the rest: checkpoints, files, other devices, replicas, summaries, Python."""
