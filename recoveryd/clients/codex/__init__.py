"""OpenAI's Codex, which the CLI, the Desktop app and the editor extension share: one growing file of lines a thread."""
