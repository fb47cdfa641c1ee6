"""recoveryd.heal."""
