"""recoveryd.settings."""
