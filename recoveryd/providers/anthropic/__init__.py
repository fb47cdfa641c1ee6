"""recoveryd.providers.anthropic."""
