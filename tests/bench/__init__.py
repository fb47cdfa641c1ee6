"""Measurements, each as a ratio to a floor of the same run: `python -m tests.bench --help`."""
