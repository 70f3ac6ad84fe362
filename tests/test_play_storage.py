"""The folder of a game server: full disks, damaged and large files, limits, finished games."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.play_client import PageClient, Served, serving


def raise_disk_full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk_loses_no_acknowledged_decision(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        page = served.open(link := served.begin("me", "me", "me", first_player=0))
        for _ in range(3):
            page.decide_first()
        page.send("undo", node=3)
        state = page.until("state")
        with pytest.MonkeyPatch.context() as disk:
            disk.setattr(os, "fsync", raise_disk_full)
            for kind, fields in {
                "decide": {"node": 2, "action": page.first_choice},
                "undo": {"node": 2},
                "jump": {"node": 2, "target": 0},
                "pause": {"enabled": True},
                "rename": {"seat": 0, "name": "Ada"},
            }.items():
                assert page.error_code(kind, **fields) == "not_saved"
        page.close()
        page = served.open(link)
        assert page.state == state
        assert page.latest["participants"]["seats"][0]["name"] == "you"
        page.decide_first()
        nodes = page.nodes
        page.close()
    with serving(tmp_path) as served:
        assert served.server.errors == []
        page = served.open(link)
        assert page.nodes == nodes
        page.close()


def test_game_on_a_full_disk_is_one_line_and_leaves_no_file(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = served.server.store.folder
    before, body = sorted(folder.iterdir()), {"seats": [{"kind": "me"}] * 3}
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", raise_disk_full)
        status, answer = served.post(f"{served.start_link}/games", body)
    assert (status, answer["code"]) == (507, "not_saved")
    assert os.strerror(errno.ENOSPC) in answer["message"]
    assert sorted(folder.iterdir()) == before
    assert served.begin("me", "me", "me")


def test_a_deleted_game_has_no_files_and_no_link(served: Served) -> None:
    page: PageClient = served.open(link := served.begin("me", "me", "me"))
    (game,) = [one for one in served.server.start_options()["games"] if one["link"] == link]
    path = f"{served.start_link}/games/{game['id']}"
    assert served.post(path, {}, "DELETE")[0] == 200
    assert served.post(path, {}, "DELETE")[0] == 404
    assert served.get(link)[0] == 404
    assert not [*served.server.store.folder.glob(f"{game['id']}*")]
    page.close()
