"""What others do to the folder of a run: it is moved while it is written to, or holds forged checkpoints."""

import pytest

from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, train
from mesascope.dynamics import CheckpointError
from mesascope.records import RecordError, read_checkpoint, write_checkpoint


def _train(folder, **more):
    """Twenty steps with a checkpoint after every third."""
    return train(
        LinearAttention.diagonal(2, 0.3, 0.3),
        DiagonalUnitary(Gaussian(1.0), 2),
        NextToken(6),
        steps=20,
        batch=8,
        held_out=16,
        record_every=4,
        checkpoint_every=3,
        checkpoint=folder,
        **more,
    )


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """The folder of a run that has ended."""
    folder = tmp_path_factory.mktemp("finished")
    _train(folder)
    return folder


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"steps": [4, 10**30]}, "is of more steps than 20"),
        ({"steps": [8, 4]}, "steps that do not increase"),
        ({"steps": [-5, 4]}, "steps that do not increase"),
        ({"steps": [4]}, "columns of different lengths"),
        ({"pending_steps": -3}, "greater than or equal to 0"),
        ({"pending_steps": 21}, "is of more steps than 20"),
        ({"more": 1}, "Extra inputs"),
    ],
)
def test_a_log_that_is_none_is_refused(finished_run, tmp_path, changed, words):
    """A checkpoint whose sums are right may have been made by somebody else."""
    last = max(finished_run.glob("*.checkpoint"))
    header, arrays = read_checkpoint(last)
    header = {name: value for name, value in header.items() if name not in ("bytes", "sha256")}
    log = {**header["log"], "losses": [1.0, 1.0], "steps": [4, 8], **changed}
    write_checkpoint(tmp_path / last.name, {**header, "log": log}, arrays)
    with pytest.raises(CheckpointError, match=f"has another header .*{words}"):
        _train(tmp_path)


def test_a_folder_that_is_moved_while_a_run_writes_to_it_is_not_made_again(tmp_path):
    folder, moved = tmp_path / "run", tmp_path / "moved"

    def move(now):
        if folder.exists() and now.done >= 8:
            folder.rename(moved)

    with pytest.raises(RecordError, match="was moved or removed while this run wrote to it"):
        _train(folder, progress=move)
    assert not folder.exists() and list(moved.glob("*.checkpoint"))
