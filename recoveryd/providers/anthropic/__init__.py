"""Anthropic: its rules and its sentences."""
