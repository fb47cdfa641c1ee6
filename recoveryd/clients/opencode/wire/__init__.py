"""recoveryd.clients.opencode.wire."""
