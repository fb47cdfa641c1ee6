"""recoveryd.doctor."""
