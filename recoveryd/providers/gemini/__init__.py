"""Gemini: its sentences."""
