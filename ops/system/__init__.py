"""Operations that reach outside a graph: checkpoints, files, other devices, replicas, summaries, Python."""
