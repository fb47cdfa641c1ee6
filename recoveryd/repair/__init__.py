"""recoveryd.repair."""
