# What is run often. Each recipe is a plain command, which works without `just` too: see CONTRIBUTING.md.

# List the recipes.
default:
    @just --list

# Lint, format, spelling and types: seconds.
check:
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/codespell
    .venv/bin/validate-pyproject pyproject.toml
    .venv/bin/mypy

# The tests for all day, less than a minute on two cores: without the real client, a daemon, and the long ones.
fast *args:
    .venv/bin/pytest -m "not e2e and not slow" {{args}}

# The tests that start a daemon or another process, about a minute.
live *args:
    .venv/bin/pytest -m "live and not e2e" {{args}}

# The tests with the real client (npm fetches it): many minutes.
e2e *args:
    .venv/bin/pytest tests/e2e {{args}}

# The figures of docs/figures.md, measured on this machine.
bench *args:
    .venv/bin/python -m tests.bench {{args}}

# The newest published version of each client against the tests of requests and healing.
canary *args:
    .venv/bin/python -m tests.canary {{args}}

# Commit, tag and build a version: `just release 0.2.0 --dry-run` leaves nothing.
release version *args:
    .venv/bin/python .ci/release {{version}} {{args}}

# A Debian package of this tree, in FOLDER.
deb FOLDER:
    .ci/deb {{FOLDER}}
