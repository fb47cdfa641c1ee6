"""Places of stores that lead nowhere, or that can't be looked at: the other stores are found all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from recoveryd.clients import Config, find_stores

WHERE = {
    "XDG_DATA_HOME": "opencode/storage",
    "OPENCODE_DB": "",
    "KILO_DB": "",
    "CODEX_HOME": "",
    "CLAUDE_CONFIG_DIR": "projects",
}


def circle(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(place)


@pytest.mark.parametrize("variable", WHERE)
def test_a_link_that_leads_round_in_a_circle_hides_no_other_store(tmp_path: Path, variable: str) -> None:
    circle(tmp_path / "odd" / WHERE[variable])
    _found(tmp_path, {variable: str(tmp_path / "odd")})


@pytest.mark.parametrize("variable", WHERE)
def test_a_path_that_the_system_does_not_look_at_hides_no_other_store(tmp_path: Path, variable: str) -> None:
    """A name that is too long stands for a mount that is dead, and for a folder that may not be entered."""
    _found(tmp_path, {variable: str(tmp_path / ("x" * 300) / "odd")})


def _found(folder: Path, env: dict[str, str]) -> None:
    healthy = folder / "healthy"
    (healthy / "storage" / "message").mkdir(parents=True)
    config = Config.model_validate({"opencode": {"data_dirs": [healthy]}})
    stores = find_stores(config, {"HOME": str(folder / "home"), **env})
    assert healthy / "storage" in [store.root for store in stores if store.exists()]
