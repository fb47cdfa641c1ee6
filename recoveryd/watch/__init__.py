"""recoveryd.watch."""
