"""recoveryd.service."""
