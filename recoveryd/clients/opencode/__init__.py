"""recoveryd.clients.opencode."""
