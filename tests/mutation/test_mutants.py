"""Mistakes put into the engine on purpose are seen: a test suite that lets them live proves nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mutation import __main__ as command
from mutation.mutants import MUTANTS, Mutant
from mutation.sandbox import ROOT, Sandbox, mutated


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_still_applies(mutant: Mutant) -> None:
    """The code that a mutant replaces is there exactly once, what it makes of it is Python, and its test exists."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    compile(mutated(text, mutant), mutant.file, "exec")
    file, _, name = mutant.killer.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_mutants_are_many_and_different() -> None:
    """There are at least twenty, no two of the same name or the same change, and each promise has some."""
    assert len(MUTANTS) >= 20
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)
    assert {mutant.promise for mutant in MUTANTS} == {"P1", "P2", "P3", "P4", "P5", "P6"}


def test_words_that_no_mutant_has_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing runs, least of all every test there is: the words are named, and where to find better ones."""
    monkeypatch.setattr("sys.argv", ["mutation", "-k", "nobody made this"])
    monkeypatch.setattr(command, "Sandbox", None)
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "error: no mutant's name has 'nobody made this' in it\nhint: tests/mutation/mutants.py" in said


def test_a_mutant_is_killed_and_the_checkout_is_not_touched(tmp_path: Path) -> None:
    """Its test passes as things are and fails with the mistake, which is in a copy; `make mutants` tries them all."""
    mutant = next(each for each in MUTANTS if each.killer.startswith("tests/wheel/"))
    before = (ROOT / mutant.file).read_bytes()
    with closing(Sandbox(tmp_path)) as sandbox:
        code, words = sandbox.run_tests([mutant.killer])
        assert code == 0, words
        with sandbox._mutated(mutant):
            assert (tmp_path / mutant.file).read_text(encoding="utf-8") == mutated(before.decode(), mutant)
            assert (ROOT / mutant.file).read_bytes() == before
        assert (tmp_path / mutant.file).read_bytes() == before
        verdict = sandbox.try_mutant(mutant)
        assert verdict.killed, f"{mutant.name} lives: {verdict.words}"
