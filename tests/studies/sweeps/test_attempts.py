"""Attempts of a run: their number, their driver, and which of them killed it."""

import pytest

from mesascope.records import RecordError, checkpoint_name
from mesascope.studies import StudySpec, parse_spec, sweep
from mesascope.studies.sweeps._attempts import (
    abandon_attempt,
    attempts,
    begin_attempt,
    driver_deaths,
    has_advanced,
    last_driver,
)
from mesascope.studies.sweeps._prepare import check, open_or_make, prepare, without_killers


def test_attempts_are_counted_with_their_driver(tmp_path):
    assert (attempts(tmp_path), last_driver(tmp_path)) == (0, "")
    assert begin_attempt(tmp_path, "first") == 1
    abandon_attempt(tmp_path)
    assert begin_attempt(tmp_path, "second") == 2
    assert (attempts(tmp_path), last_driver(tmp_path)) == (2, "second")


def test_a_line_cut_short_by_a_full_disk_is_an_attempt(tmp_path):
    begin_attempt(tmp_path, "first")
    with open(tmp_path / "attempts.jsonl", "a") as file:
        file.write('{"pid": 1, "ho')
    assert (attempts(tmp_path), last_driver(tmp_path)) == (2, "")


def test_deaths_of_drivers_are_counted_until_the_run_advances(tmp_path):
    def died(recorded=0):
        return driver_deaths(tmp_path, recorded)

    begin_attempt(tmp_path, in_driver=True)
    assert died() == 1
    begin_attempt(tmp_path, in_driver=True)
    assert died() == 2 and died(recorded=1) == 1
    begin_attempt(tmp_path, in_driver=True)
    abandon_attempt(tmp_path)  # such as by Ctrl-C
    assert died() == 2
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / checkpoint_name(4)).touch()
    assert has_advanced(tmp_path) and died() == 0
    begin_attempt(tmp_path, in_driver=True)
    assert not has_advanced(tmp_path) and died() == 1
    begin_attempt(tmp_path)  # of a worker
    assert died() == 0


def test_a_folder_that_cannot_be_written_to_is_reported(tmp_path):
    (tmp_path / "attempts.jsonl").mkdir()
    with pytest.raises(RecordError, match="make room"):
        begin_attempt(tmp_path)


@pytest.mark.slow
def test_a_run_that_kills_its_driver_comes_last_and_fails_in_the_end(many_losses, tmp_path):
    study = parse_spec(many_losses(3), StudySpec)
    with open_or_make(tmp_path / "s") as store:
        prepared = prepare(study, check(study), store)
        killer, *others = prepared.left
        folder = store.folders.folder(killer)
        begin_attempt(folder, in_driver=True)
        assert without_killers(prepared, store, retries=1).left == [*others, killer]
        begin_attempt(folder, in_driver=True)
    result = sweep(study, tmp_path / "s", retries=1)
    assert (result.done, result.failed) == (2, 1)
    assert result.failures[0].error.startswith("KilledDriver: the process that computed it died 2 times")
    again = sweep(study, tmp_path / "s", retries=5)
    assert (again.done, again.failed, again.reused) == (0, 1, 2)
