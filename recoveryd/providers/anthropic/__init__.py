"""Anthropic's Messages API: what it refuses of a conversation, and in which sentences."""
