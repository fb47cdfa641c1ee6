"""recoveryd.tell."""
