"""recoveryd.disk."""
