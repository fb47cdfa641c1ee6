"""recoveryd.demo."""
