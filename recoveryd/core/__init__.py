"""recoveryd.core."""
