"""OpenAI: its sentences."""
