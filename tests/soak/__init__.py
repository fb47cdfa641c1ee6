"""The daemon under load, as a real process: `python -m tests.soak --help`."""
