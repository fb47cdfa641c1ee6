"""The sessions of OpenCode 1.1: a tree of JSON files."""
