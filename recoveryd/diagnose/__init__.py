"""recoveryd.diagnose."""
