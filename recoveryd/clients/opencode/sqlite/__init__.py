"""recoveryd.clients.opencode.sqlite."""
