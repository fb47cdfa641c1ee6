"""recoveryd.providers."""
