"""recoveryd.daemon."""
