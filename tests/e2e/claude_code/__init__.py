"""The real Claude Code in front of the strict provider."""
