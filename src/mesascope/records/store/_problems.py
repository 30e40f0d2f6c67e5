"""Checking the folders of a store."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from mesascope.records._files import RecordError, read_bytes, unreadable

from ._folders import ATTEMPTS, RunFolders
from ._paths import links_outwards

_OF_A_STORE = re.compile(r"store\.json|runs|studies|drivers|lost\+found|.*\.sqlite(-\w+)?")
_OF_A_RUN = re.compile(r"planned\.json|attempts\.jsonl|run\.json(\.damaged\d*)?|trajectory\.nc|checkpoint")


def problems(folders: RunFolders) -> list[str]:
    """One line for everything that is torn, was changed, or does not belong where it is."""
    return [*_links(folders.root), *_strangers(folders.root), *_of_runs(folders), *_of_studies(folders)]


def _links(root: Path) -> Iterator[str]:
    for link in links_outwards(root, root):
        yield f"{link} is a symbolic link that leads out of the store; remove it"


def _strangers(root: Path) -> Iterator[str]:
    for name in sorted(_files(root)):
        if not _OF_A_STORE.fullmatch(name):
            yield f"{root} holds {name!r}, which is not of a store; keep it elsewhere"


def _of_runs(folders: RunFolders) -> Iterator[str]:
    parts = {path.name for path in folders.root.glob("runs/*") if not path.name.startswith(".")}
    for name in sorted(parts - set(folders.parts())):
        yield f"{folders.root / 'runs'} holds {name!r}, which is no folder of runs; remove it"
    known = folders.ids()
    lying = {path.name for path in folders.root.glob("runs/*/*") if not path.name.startswith(".")}
    for name in sorted(lying - set(known)):
        yield f"{folders.root / 'runs'} holds {name!r}, which is not a run in its place; remove it"
    for run in known:
        try:
            yield from _of_run(folders, run)
        except RecordError as error:
            yield str(error)


def _of_run(folders: RunFolders, run: str) -> Iterator[str]:
    if not folders.folder(run).is_dir():
        yield f"{folders.folder(run)} is not a folder; remove it"
        return
    there = _files(folders.folder(run))
    if "planned.json" not in there:
        if there:
            yield f"{folders.folder(run)} holds {min(there)!r} and no plan; remove it: mesascope runs rm {run}"
        return  # a process that was killed while it planned leaves an empty folder
    for name in sorted(there):
        if not _OF_A_RUN.fullmatch(name):
            yield f"{folders.folder(run)} holds {name!r}, which is not of a run; remove it"
    planned = folders.planned(run)
    if planned.id != run:
        yield f"{folders.folder(run) / 'planned.json'} is the plan of run {planned.id}; remove the run"
    if ATTEMPTS in there:
        yield from _of_attempts(folders.folder(run) / ATTEMPTS)
    if "run.json" not in there:
        return
    record = folders.finished(run)
    if (record.kind, record.spec, record.code) != (planned.kind, planned.spec, planned.code):
        yield f"{folders.folder(run) / 'run.json'} is not the record of the run that was planned; remove the run"
    if record.files:
        folders.trajectory(run)


def _of_attempts(file: Path) -> Iterator[str]:
    try:
        lines = read_bytes(file).splitlines()
    except OSError as error:
        raise unreadable(file, error, "remove it") from error
    for number, line in enumerate(lines, 1):
        if not _is_object(line):
            yield f"{file}, line {number}, says nothing of an attempt; remove the line, or the file"
            return


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _files(folder: Path) -> set[str]:
    """What a run's folder holds, without locks and what is being written."""
    try:
        return {name for name in os.listdir(folder) if not name.startswith(".")}
    except OSError as error:
        raise unreadable(f"the folder {folder}", error) from error


def _of_studies(folders: RunFolders) -> Iterator[str]:
    yield from folders.misplaced_studies()
    for name in folders.studies():
        try:
            folders.study(name)
        except RecordError as error:
            yield str(error)
