"""recoveryd.clients.opencode.files."""
