"""A store that two users of a machine share, and one that only one of them may write to."""

import os
import re
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from mesascope.records import RecordError, RunFolders, StudyAxis, StudyPoint, StudyRecord, open_store

ONE, OTHER, GROUP = 54001, 54002, 54321

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be two users"
)


@contextmanager
def being(user, umask=0o022):
    """Be this user, in a group of one's own and in the one that both share."""
    groups, mask = os.getgroups(), os.umask(umask)
    os.setgroups([GROUP])
    os.setegid(user)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
        os.umask(mask)


@pytest.fixture
def place(made, tmp_path):
    """A folder of the first user's; not below tmp_path, which only root may enter."""
    with open_store(RunFolders.create(tmp_path / "first").root) as store:  # all modules are loaded as root
        store.enter([made.compute(store.folders, 1)])
        assert store.verify() == []
    with tempfile.TemporaryDirectory() as above:
        os.chmod(above, 0o755)
        folder = Path(above) / "store"
        folder.mkdir()
        os.chown(folder, ONE, GROUP)
        yield folder


def study(*runs):
    axes = (StudyAxis(name="a", labels=tuple(range(len(runs)))),)
    points = tuple(StudyPoint(run=run, place=(at,)) for at, run in enumerate(runs))
    return StudyRecord(name="both", kind="flow", spec={}, axes=axes, points=points)


@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_two_users_write_to_a_shared_store(place, made, umask):
    place.chmod(0o2770)
    with being(ONE, umask):
        folders = RunFolders.create(place)
        first = open_store(place)
        first.enter([made.compute(folders, 1)])
        first.write_study(study(made.planned(1).id))
        folders.plan(made.planned(2))
        folders.finish(made.ended(made.planned(2), error="out of memory"))
        first.refresh()
        (folders.folder(made.planned(2).id) / ".run.lock").touch(mode=0o600)  # left by a kill
        os.chmod(folders.folder(made.planned(2).id) / ".run.lock", 0o660)
    # While the first user's connections, and SQLite's log, are still there.
    with being(OTHER, umask), open_store(place) as second:
        assert {row.status for row in second.rows()} == {"done", "failed"}
        with folders.holding(made.planned(2).id):
            folders.finish(made.ended(made.planned(2), attempts=2), {"x": ("x", [1.0])})
        second.enter([made.compute(folders, 3), made.planned(2).id])
        second.write_study(study(made.planned(1).id, made.planned(3).id))
        assert second.count(["status=done"]) == 3 and second.verify() == []
    with being(ONE, umask):
        assert first.count(["status=done", "study=both"]) == 2
        first.remove([made.planned(3).id])
        first.close()
    with being(OTHER, umask), open_store(place) as second:
        second.remove([made.planned(1).id])
        assert second.count() == 1 and second.reindex() == 1 and second.verify() == []
    for path in [place, *place.rglob("*")]:
        found = path.stat()
        bits = stat.S_ISGID | stat.S_IRWXG if path.is_dir() else stat.S_IRGRP | stat.S_IWGRP
        assert found.st_gid == GROUP and found.st_mode & bits == bits, path


def test_a_run_that_another_user_computes_is_not_taken(place, made):
    place.chmod(0o2770)
    with being(ONE):
        folders = RunFolders.create(place)
        folders.plan(made.planned(1))
        with folders.holding(made.planned(1).id):
            os.chmod(folders.folder(made.planned(1).id) / ".run.lock", 0o600)
            with being_other():
                assert folders.running(made.planned(1).id)
                with pytest.raises(RecordError, match="is being computed"):
                    folders.remove(made.planned(1).id)
        assert folders.status(made.planned(1).id) == "planned"


@contextmanager
def being_other():
    """From the first user to the second and back: through root, who alone may become others."""
    os.seteuid(0)
    os.seteuid(OTHER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.seteuid(ONE)


def test_a_store_that_may_only_be_read_takes_an_index_elsewhere(place, made, tmp_path):
    place.chmod(0o2750)
    with being(ONE, 0o027):
        folders = RunFolders.create(place)
        with open_store(place) as store:
            store.enter([made.compute(folders, 1)])
    own = place.with_name("own")
    own.mkdir()
    os.chown(own, OTHER, OTHER)
    before = sorted(path.name for path in place.rglob("*"))
    with being(OTHER):
        with pytest.raises(RecordError, match="keep an index of your own: --index sqlite:///") as caught:
            open_store(place)
        assert "\n" not in str(caught.value)
        with open_store(place, f"sqlite:///{own / 'index.sqlite'}") as store:
            assert store.count(["status=done"]) == 1 and store.verify() == []
            with pytest.raises(RecordError, match=r"Permission denied; check the permissions.*chmod g"):
                made.compute(folders, 2)
            with pytest.raises(RecordError, match="cannot be removed"):
                store.remove([made.planned(1).id])
            assert store.count() == 1
    assert sorted(path.name for path in place.rglob("*")) == before


def test_unreadable_files_are_reported(place, made):
    place.chmod(0o2755)
    with being(ONE):
        folders = RunFolders.create(place)
        folders.plan(made.planned(1))
        folders.finish(made.ended(made.planned(1), error="lost"))
    own = place.with_name("own")
    own.mkdir()
    os.chown(own, OTHER, OTHER)
    with being(OTHER), open_store(place, f"sqlite:///{own / 'index.sqlite'}") as store:
        reported = r"cannot read .*: Permission denied; check the permissions"
        with closed(folders.folder(made.planned(1).id)):
            (row,) = store.rows()
            assert row.status == "unreadable" and re.search(reported, row.error)
            (problem,) = store.verify()
            assert re.search(reported, problem) and store.reindex() == 1
        store.refresh()
        assert [row.status for row in store.rows()] == ["failed"]
        with closed(place / "runs"), pytest.raises(RecordError, match=reported):
            store.refresh()
        store.refresh()
        assert store.verify() == []


@contextmanager
def closed(folder):
    """Nobody but root may read this folder of the first user's; the second user is here."""
    for mode in (0, 0o755):
        os.seteuid(0)
        folder.chmod(mode)
        os.seteuid(OTHER)
        if mode == 0:
            yield
