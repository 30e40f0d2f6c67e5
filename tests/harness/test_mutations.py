"""Every kind of file that mesascope reads, damaged and forged thousands of times.

A mutant may be read as what it was before, or be refused in one line (exit status 2 or 1). A file whose checksum was computed
again, or that has none, may also be read as another valid file; whoever can write such a file can write any. Everything else is
lost: a traceback, a wait, and above all another content under an old checksum.

`MESASCOPE_MUTANTS` is the number of mutants, `MESASCOPE_SEED` another seed. From 6000 on (`make stress`) the figures go into
`mutations.json`, of which docs/store.md has the table. What is written for other programs is never read: CSV, Parquet, MLflow,
PDF, the contexts of a benchmark, the arrays beside an identification along training.
"""

import json
import os
import random
import signal
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import mutants
from harness.files import Kind
from harness.files_of_benchmarks import BENCHMARKS
from harness.files_of_records import RECORDS
from harness.files_of_runs import RUNS
from harness.files_of_stores import STORES
from harness.files_of_users import USERS
from mesascope.cli import main
from mesascope.records import folder_lock

MUTANTS = int(os.environ.get("MESASCOPE_MUTANTS", "5000"))
SEED = os.environ.get("MESASCOPE_SEED", "1")
RECORD = Path(__file__).with_name("mutations.json")
FULL = 6000
COMMAND_EVERY = 10  # mutants
SECONDS = 30.0  # for one mutant, on a busy machine


KINDS = {one.__name__.replace("_", " "): one for one in (*RECORDS, *BENCHMARKS, *STORES, *RUNS)} | USERS
"""Kind of file → what makes an example in a folder."""
EACH = -(-MUTANTS // len(KINDS))


class Hang(BaseException):
    """A mutant took too long."""


def _hang(*_):
    raise Hang(f"it took more than {SECONDS} s")


@pytest.fixture(autouse=True)
def alarm():
    before = signal.signal(signal.SIGALRM, _hang)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def ended(kind: Kind, original: str, forged: bool) -> tuple[str, str]:
    """How the reading of the file ended, and why it is lost."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        found = kind.read()
    except ValidationError as error:
        return "lost", f"many lines: {error!r:.200}"
    except (ValueError, MemoryError):
        return "refused", ""
    except (Exception, Hang) as error:
        return "lost", f"{error!r:.300}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if found == original:
        return "same", ""
    return (
        ("other", "") if forged or not kind.checksum else ("lost", "another content under the old checksum")
    )


def command_lost(kind: Kind, end: str, forged: bool, capsys: Any) -> str:
    """Why the end of the command does not fit that of the reader; "" if it does. It may read a part of a forged file only."""
    signal.setitimer(signal.ITIMER_REAL, 6 * SECONDS)
    try:
        status = main(kind.command)
    except (Exception, Hang) as error:
        return f"{' '.join(kind.command)}: {error!r:.300}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    said = capsys.readouterr().err
    overlooked = end == "refused" and not forged and (status == 0 or not said)
    if status not in (0, 1, 2) or overlooked or (end == "same" and status):
        return f"{' '.join(kind.command)}: exit status {status} where the file is {end}: {said:.300}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_mutants_are_read_as_before_or_refused(tmp_path, capsys, name):
    warnings.simplefilter("ignore")  # of libraries, about numbers; the test restores the filters
    kind = KINDS[name](tmp_path)
    whole, began = kind.file.read_bytes(), time.monotonic()
    others = (whole, *kind.others)
    original = kind.read()
    assert original == kind.read()
    counts, lost = Counter(tried=0, same=0, refused=0, other=0, lost=0), []
    for number in range(EACH):
        chance = random.Random(f"{SEED} {name} {number}")
        forged = kind.forge is not None and number % 2 == 1
        mutant = (kind.forge if forged else mutants.damaged)(chance, whole, others)
        kind.file.write_bytes(mutant)
        end, why = ended(kind, original, forged)
        if not why and kind.command and number % COMMAND_EVERY < 2:
            why = command_lost(kind, end, forged, capsys)
        counts["tried"] += 1
        counts["lost" if why else end] += 1
        if why:
            lost.append(f"MESASCOPE_SEED={SEED} {name} mutant {number}{' (forged)' * forged}: {why}")
    if MUTANTS >= FULL:
        _record(name, counts, time.monotonic() - began)
    assert not lost, "\n".join([f"{len(lost)} of {EACH} mutants are lost:", *lost[:20]])


def _record(name, counts, seconds):
    """Write the figures of one kind."""
    with folder_lock(RECORD.parent, "mutations", wait=60):
        try:
            before = json.loads(RECORD.read_text())
        except (OSError, ValueError):
            before = {}
        kinds = {one: found for one, found in before.get("kinds", {}).items() if one in KINDS}
        kinds[name] = dict(counts, seconds=round(seconds, 1))
        total = {one: sum(found[one] for found in kinds.values()) for one in counts}
        document = {"seed": SEED, "total": total, "kinds": dict(sorted(kinds.items()))}
        RECORD.write_text(json.dumps(document, indent=1) + "\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
SEALED = (
    "claim",
    "figure",
    "identification",
    "run",
    "planned",
    "study",
    "store",
    "certificate",
    "driver",
    "lock",
    "loss.json",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEALED)
def test_any_json_is_refused(tmp_path, name):
    kind = KINDS[name](tmp_path)
    document, original = json.loads(kind.file.read_text()), kind.read()

    @settings(max_examples=max(20, EACH // 4), derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(JSON)
    def check(value):
        kind.file.write_text(json.dumps(value))
        assert ended(kind, original, True)[0] != "lost"
        if "content" in document:
            kind.file.write_bytes(mutants.sealed(document | {"content": value}))
            assert ended(kind, original, True)[0] != "lost"

    check()
