"""Numbers, outcomes and tables on the pages of papers that come from records and claims, and are written anew from them.

A mark is a pair of comments, which no reader sees:

    <!--small trained-loss .2% measured/loss_above_the_best_step-->0.12 %<!--/-->

It names the preset and the claim (of the page's own paper, or by its full id), how the number is written, and where in the
record it stands: field, keys and indices with `/` between them, `*` for all of them. How it is written: operations, each
followed by `:`, and a format of Python's, in brackets for an interval. Formats besides: `p`, percent without the sign; `^`, a
power of ten with its exponent raised; `s`, the text itself. A list without brackets is written with commas.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import log10
from statistics import fmean
from typing import Any

from mesascope.records import SIGNS, ClaimRecord

MARK = re.compile(
    r"<!--(?P<preset>small|full) (?P<claim>\S+) (?P<form>\S+) (?P<key>[^>]*?)-->(?P<text>.*?)<!--/-->"
)

_TOLD = rf"(?:{'|'.join(map(re.escape, SIGNS))}) \([^)]+\)"
ROW = re.compile(
    rf"^\| (?P<claims>(?:`[^`]+`(?:, )?)+) \|(?P<middle>.*)\| (?P<told>{_TOLD})(?P<rest>[^|]*) \|$", re.M
)
"""A line of a table of claims with outcome and evidence at the end: `holds (exact)`, and what explains them."""
DIFFERENCES = re.compile(r"(?<=<!--differences-->\n).*?(?=<!--/differences-->)", re.S)
"""Where the table of differences from the paper's setting stands."""

Find = Callable[[str, str], ClaimRecord]
"""Preset and claim → record."""


def _flat(value: Any) -> list[float]:
    return list(chain.from_iterable(map(_flat, value))) if isinstance(value, list) else [value]


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "max": lambda value: max(_flat(value)),
    "min": lambda value: min(_flat(value)),
    "mean": lambda value: fmean(_flat(value)),
    "abs": lambda value: [abs(one) for one in value] if isinstance(value, list) else abs(value),
    "half": lambda interval: (interval[1] - interval[0]) / 2,  # after ±
    "minus": lambda value: _mapped(lambda one: -one, value),
    "below": lambda value: _mapped(lambda one: 1 - one, value),  # a ratio as a distance to 1
    "above": lambda value: _mapped(lambda one: one - 1, value),
}


def _mapped(function: Callable[[float], float], value: Any) -> Any:
    # an interval stays one: its lower end first
    return sorted(map(function, value)) if isinstance(value, list) else function(value)


def written(page: str, paper: str, find: Find) -> str:
    """The text of a page of `paper` with every marked number as the record says."""

    def replaced(mark: re.Match[str]) -> str:
        opening = mark[0].partition("-->")[0] + "-->"
        return f"{opening}{marked(mark, paper, find)}<!--/-->"

    return MARK.sub(replaced, page)


def outcome_cells(page: str, paper: str, outcomes: Mapping[str, str]) -> str:
    """The text of a page with outcome and evidence at the end of each line of its table of claims as the records say.

    What changed ones are followed by is left out: it explained the former ones.

    Args:
        page: its text.
        paper: its key.
        outcomes: claim id → outcome and evidence, as they are written.

    Raises:
        ValueError: a line tells of several claims for which they differ, or of one that has no record.
    """

    def replaced(row: re.Match[str]) -> str:
        found = {
            outcomes.get(id, "none")
            for name in claim_names(row["claims"])
            for id in claims_meant(name, paper, outcomes) or [name]
        }
        if len(found) != 1 or "none" in found:
            raise ValueError(
                f"{paper}: {row['claims']} has no one outcome, but {', '.join(sorted(found))}; give each a line"
            )
        (told,) = found
        rest = row["rest"] if told == row["told"] else ""
        return f"| {row['claims']} |{row['middle']}| {told}{rest} |"

    return ROW.sub(replaced, page)


def claim_names(cell: str) -> list[str]:
    """The names of claims in a cell of a table."""
    return re.findall("`([^`]+)`", cell)


def claims_meant(name: str, paper: str, ids: Iterable[str]) -> list[str]:
    """Those of the ids that a name in a table means, in which … stands for anything."""
    pattern = re.escape(name if "/" in name else f"{paper}/{name}").replace("…", ".+")
    return [id for id in ids if re.fullmatch(pattern, id)]


def marked(mark: re.Match[str], paper: str, find: Find) -> str:
    """What has to stand between the two comments of a mark.

    Raises:
        ValueError: the record has no such value, or the value cannot be written so; says which mark.
    """
    id = mark["claim"] if "/" in mark["claim"] else f"{paper}/{mark['claim']}"
    try:
        field, *keys = mark["key"].split("/")
        value = _value(getattr(find(mark["preset"], id), field), keys)
        *operations, form = mark["form"].split(":")
        for operation in operations:
            value = OPERATIONS[operation](value)
        return _formatted(value, form)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"mark {mark[0]!r} of {paper}: {type(error).__name__} {error}; fix its key or format"
        ) from error


def _value(found: Any, keys: Sequence[str]) -> Any:
    if not keys:
        return found
    key, *rest = keys
    if key == "*":
        return [_value(one, rest) for one in (found.values() if isinstance(found, dict) else found)]
    return _value(found[int(key)] if isinstance(found, list) else found[key], rest)


def _formatted(value: Any, form: str) -> str:
    if form.startswith("["):
        low, high = value
        return f"[{_formatted(low, form[1:-1])}, {_formatted(high, form[1:-1])}]"
    if isinstance(value, list):
        return ", ".join(_formatted(one, form) for one in value)
    if form == "s":
        return str(value)
    if form[-1] in "%p":
        return _number(100 * value, f"{form[:-1]}f") + (" %" if form[-1] == "%" else "")
    if form[-1] == "^":
        return _power(value, form[:-1])
    return _number(value, form)


def _number(value: float, form: str) -> str:
    """Format a number, with a minus for a hyphen, thousands apart and no zeros before an exponent."""
    text = re.sub(r"e([+-])0*(\d)", lambda found: f"e{found[1].strip('+')}{found[2]}", format(value, form))
    mantissa, e, exponent = text.partition("e")
    return mantissa.replace("-", "−").replace(",", " ") + e + exponent


def _power(value: float, digits: str) -> str:
    """1.6e-15 as 1.6·10⁻¹⁵; without digits as 10⁻¹⁵, the nearest power."""
    mantissa, _, exponent = (
        format(value, f"{digits}e").partition("e") if digits else ("", "", round(log10(value)))
    )
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa.replace('-', '−')}·10{raised}" if digits else f"10{raised}"
