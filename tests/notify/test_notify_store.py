"""What survives the process: the state file, its lock, and the dead letters."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from heartwheel.readers.live.topic_rows import OutputTopic
from heartwheel.readers.notify import store as store_module
from heartwheel.readers.notify.message import Message
from heartwheel.readers.notify.outbox import PendingMessage
from heartwheel.readers.notify.store import NotifierState, Store, StoreError

WAITING = PendingMessage(
    message=Message(id="msg_1", body="{}", incidents=("i",), title="t", made_ms=1), fault="f", attempts=2
)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """Positions, incidents and messages come back as they were; at the first start there is nothing."""
    store = Store(tmp_path)
    assert store.load() is None
    state = NotifierState(began_ms=5, positions={OutputTopic.EXPIRATIONS: {0: 7}}, waiting=[WAITING])
    store.save(state)
    assert store.load() == state


def test_the_file_keeps_the_names_of_its_fields(tmp_path: Path) -> None:
    """What an earlier release wrote is read: the file's names stand, whatever the code calls them."""
    incident = {"id": "i", "group_id": "g", "opened_ms": 1, "expired_ms": 2, "told_ms": 3, "told_expired": 4}
    pages = {"incidents": [incident], "seen": ["e"]}
    (tmp_path / "state.json").write_bytes(msgspec.json.encode({"format": 1, "began_ms": 5, "pages": pages}))
    state = Store(tmp_path).load()
    assert state is not None
    (found,) = state.snapshot.incidents
    assert (found.reported_ms, found.reported_expired, state.snapshot.seen) == (3, 4, ["e"])
    Store(tmp_path).save(state)
    written = msgspec.json.decode((tmp_path / "state.json").read_bytes())["pages"]
    assert written["seen"] == ["e"]
    assert written["incidents"][0].items() >= incident.items()


@pytest.mark.parametrize("data", [b"", b"{", b'{"format": 1, "positions": 3}', b'{"format": 2}', b"\xff\xfe"])
def test_a_damaged_file_is_refused_by_name(data: bytes, tmp_path: Path) -> None:
    """Never silently taken as empty: incidents would be forgotten, and what happened meanwhile too."""
    (tmp_path / "state.json").write_bytes(data)
    with pytest.raises(StoreError, match=r"state\.json") as caught:
        Store(tmp_path).load()
    assert "move the file away" in (caught.value.hint or "")


def test_two_notifiers_do_not_share_a_folder(tmp_path: Path) -> None:
    """The second one is refused while the first one runs."""
    with Store(tmp_path / "new").locked(), pytest.raises(StoreError, match="another notifier"):
        Store(tmp_path / "new").locked().__enter__()
    with Store(tmp_path / "new").locked():
        pass


def test_dead_letters_are_kept_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead letter is a line with the whole message; of two full files the older one goes."""
    monkeypatch.setattr(store_module, "DEAD_BYTES_MAX", 400)
    store = Store(tmp_path)
    for at_ms in range(20):
        store.add_dead_letter(WAITING, now_ms=at_ms)
    files = [tmp_path / "dead-letters.1.jsonl", tmp_path / "dead-letters.jsonl"]
    letters = [msgspec.json.decode(line) for file in files for line in file.read_bytes().splitlines()]
    assert [letter["at_ms"] for letter in letters] == list(range(20 - len(letters), 20))
    assert all(letter["message"]["body"] == "{}" and letter["fault"] == "f" for letter in letters)
    assert all(file.stat().st_size <= 400 for file in files)
