"""Hostile stores, many of them, through all that reads or repairs one: `python -m tests.fuzz --help`."""
