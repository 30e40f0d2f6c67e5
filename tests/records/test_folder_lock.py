"""Folders that one process holds at a time."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mesascope.records import InUseError, RecordError, folder_lock

HOLD = """
import sys, time
from mesascope.records import folder_lock
with folder_lock(sys.argv[1], "test"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_held_folder_is_refused_and_left_as_it_was(tmp_path):
    folder = tmp_path / "a" / "b"
    with folder_lock(folder, "test"):
        message = rf"{re.escape(str(folder))}: is in use by process {os.getpid()} on .* since"
        with pytest.raises(InUseError, match=message), folder_lock(folder, "test"):
            pytest.fail("held twice")
        with folder_lock(folder, "other"):  # for another purpose
            pass
        assert [path.name for path in folder.iterdir()] == [".test.lock"]
    assert not list(folder.iterdir())
    with folder_lock(folder, "test"):
        pass


def test_a_link_in_the_place_of_the_lock_is_refused_and_its_target_left_alone(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("data")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".test.lock").symlink_to(precious)
    refused = pytest.raises(RecordError, match=r"\.test\.lock: cannot be written .*; remove this link")
    with refused as raised, folder_lock(tmp_path / "folder", "test"):
        pytest.fail("held through a link")
    assert not isinstance(raised.value, InUseError)
    assert precious.read_text() == "data"


def test_a_folder_is_free_after_an_error(tmp_path):
    with pytest.raises(KeyError), folder_lock(tmp_path, "test"):
        raise KeyError
    with folder_lock(tmp_path, "test"):
        pass


@pytest.mark.skipif(os.name != "posix", reason="processes are killed by signals")
def test_a_killed_process_holds_nothing(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with (
        pytest.raises(InUseError, match=f"is in use by process {process.pid} on "),
        folder_lock(tmp_path, "test"),
    ):
        pytest.fail("held twice")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (tmp_path / ".test.lock").exists()  # and does not block
    with folder_lock(tmp_path, "test"):
        pass
    assert not list(tmp_path.iterdir())


def test_only_one_at_a_time(tmp_path):
    """Whoever finds the file that another is about to remove must not believe that it holds the folder."""
    inside, most, times = [], [], []

    def work(me):
        while len(times) < 300:
            try:
                with folder_lock(tmp_path, "test"):
                    inside.append(me)
                    most.append(len(inside))
                    times.append(me)
                    inside.remove(me)
            except InUseError:
                pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(times) >= 300 and max(most) == 1


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RecordError, match="cannot be written to"), folder_lock(tmp_path / "file", "test"):
        pytest.fail("held a file")
