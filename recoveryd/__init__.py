"""recoveryd heals AI coding sessions whose stored history a provider refuses."""

__version__ = "0.1.0"
