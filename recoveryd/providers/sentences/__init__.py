"""recoveryd.providers.sentences."""
