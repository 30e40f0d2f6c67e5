"""The form of the page: a text for every field, to a setting and back, errors at the field that they are about."""

import json
from collections.abc import Mapping
from typing import Any

from mesascope.studies import FlowSpec, SpecError

from ._setting import plain_setting, read_setting, read_value

_LONGEST = 200_000  # characters of one field: some ten thousand numbers

Form = dict[str, str]
"""Texts by field; every field is always there, also those that another choice hides."""

LAWS = {
    "gaussian": "Gaussian",
    "sparse": "Sparse: one coordinate is ±scale",
    "constant": "Constant",
    "rademacher": "Rademacher: fair signs ±scale",
    "uniform": "Uniform on [−scale, scale]",
    "studentt": "Student t",
    "mixture": "Mixture of laws",
    "empirical": "Given samples",
    "moments": "Given moments",
}
LAW_FIELDS = {
    "gaussian": ("law.scale",),
    "sparse": ("law.scale",),
    "constant": ("law.value",),
    "rademacher": ("law.scale",),
    "uniform": ("law.scale",),
    "studentt": ("law.df", "law.scale"),
    "mixture": ("law.parts",),
    "empirical": ("law.samples", "law.joint"),
    "moments": ("law.moments",),
}
OBJECTIVES = {
    "every": "every prediction (autoregressive)",
    "last": "the last one only",
    "given": "weights by context length",
}
NORMALIZERS = {"t-1": "ρ_t = t − 1 (the paper)", "t": "ρ_t = t", "1": "ρ_t = 1"}
STARTS = {
    "diagonal": "diagonal: a₀ I and b₀ I",
    "gaussian": "Gaussian: every entry N(0, σ_w²)",
    "explicit": "given matrices",
}
START_FIELDS = {
    "diagonal": ("init.a", "init.b"),
    "gaussian": ("init.scale", "init.seed"),
    "explicit": ("init.w_kq", "init.w_pv"),
}
MASKS = {"": "none", "off-diagonal": "off-diagonal gradients are 0 (Theorem 4.3)"}
SOLVERS = {"": "Tsit5 (explicit)", "kvaerno5": "Kvaerno5 (implicit, for slow approaches)"}

_EMPTY: Form = {
    "law.kind": "gaussian",
    "law.scale": "1",
    "law.value": "1",
    "law.df": "9",
    "law.parts": "0.5 gaussian scale=1\n0.5 rademacher scale=1",
    "law.samples": "-1, 0.5, 2",
    "law.joint": "",
    "law.moments": "1, 0, 1, 0, 3, 0, 15",
    "dim": "5",
    "horizon": "100",
    "objective": "every",
    "weights": "",
    "rho": "t-1",
    "init.kind": "diagonal",
    "init.a": "0.1",
    "init.b": "0.1",
    "init.scale": "0.1",
    "init.seed": "0",
    "init.w_kq": "",
    "init.w_pv": "",
    "mask": "",
    "solver": "",
    "until": "steady-state",
    "tolerance": "",
    "max_steps": "",
}


def form_of(spec: FlowSpec) -> Form:
    """The form that spells a setting."""
    fields = plain_setting(spec)
    form = dict(_EMPTY)
    for name, value in fields["law"].items():
        form[f"law.{name}"] = _LAW_TEXTS.get(name, _text)(value)
    for name, value in fields["init"].items():
        form[f"init.{name}"] = _rows_text(value) if name.startswith("w_") else _text(value)
    for name in ("dim", "horizon", "rho", "mask", "solver", "until", "tolerance", "max_steps"):
        if name in fields:
            form[name] = _text(fields[name])
    weights = fields.get("weights")
    if isinstance(weights, list):
        weights = {str(t): weight for t, weight in enumerate(weights, start=2)}
    if weights is not None:
        last = weights == {str(spec.horizon - 1): 1}
        form["objective"] = "last" if last else "given"
        form["weights"] = "" if last else ", ".join(f"{t}: {_text(w)}" for t, w in weights.items())
    return form


def setting_of(form: Form) -> FlowSpec:
    """The setting that a form spells.

    Raises:
        SpecError: something is wrong in it; `field_of` says where to show that.
    """
    for name, text in form.items():
        if len(text) > _LONGEST:
            raise SpecError(
                f"has {len(text)} characters, at most {_LONGEST} are read here; mesascope flow takes files",
                tuple(name.split(".")),
            )
    return read_setting(_fields(form))


def _fields(form: Form) -> dict[str, Any]:
    kind, start = form["law.kind"], form["init.kind"]
    law: dict[str, Any] = {"kind": kind}
    for name in LAW_FIELDS[kind]:
        key = name.removeprefix("law.")
        law[key] = _LAW_READERS.get(key, _number)(form[name])
    init: dict[str, Any] = {"kind": start}
    for name in START_FIELDS[start]:
        key = name.removeprefix("init.")
        init[key] = _rows(form[name]) if start == "explicit" else _number(form[name])
    fields: dict[str, Any] = {
        "law": law,
        "dim": _number(form["dim"]),
        "horizon": _number(form["horizon"]),
        "rho": form["rho"],
        "init": init,
    }
    if form["objective"] == "given":
        fields["weights"] = _weights(form["weights"])
    elif form["objective"] == "last" and isinstance(fields["horizon"], int):
        fields["weights"] = {str(fields["horizon"] - 1): 1}
    for name in ("mask", "solver", "tolerance", "max_steps"):
        if form[name].strip():
            fields[name] = form[name] if name in ("mask", "solver") else _number(form[name])
    if form["until"].strip() not in ("", _EMPTY["until"]):
        fields["until"] = _number(form["until"])
    return fields


def field_of(error: SpecError, form: Form) -> str:
    """The field of the form that shows an error."""
    path = ".".join(map(str, error.path))
    if path in form:
        return path
    head = error.path[0] if error.path else ""
    if head == "law":
        inner = f"law.{error.path[1]}" if len(error.path) > 1 else ""
        return inner if inner in form else LAW_FIELDS[form["law.kind"]][0]
    if head == "init":
        inner = f"init.{error.path[1]}" if len(error.path) > 1 else ""
        return inner if inner in form else START_FIELDS[form["init.kind"]][0]
    return str(head) if head in form else "law.kind"


# Texts of single fields


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _number(text: str) -> Any:
    """A number or a list as JSON writes it; a fraction or a word as it stands."""
    return read_value(text.strip().replace("−", "-"))


def _list(text: str) -> Any:
    """Numbers between commas or blanks."""
    return [_number(one) for one in text.replace(",", " ").split()]


def _value(text: str) -> Any:
    """One number, or a list of them."""
    given = _list(text.strip().removeprefix("[").removesuffix("]"))
    return given[0] if len(given) == 1 and "[" not in text else given


def _rows(text: str) -> Any:
    """Rows of numbers, one a line."""
    return [_list(line) for line in text.splitlines() if line.strip()]


def _samples(text: str) -> Any:
    rows = _rows(text)
    return rows[0] if len(rows) == 1 else rows


def _rows_text(rows: Any) -> str:
    if rows and not isinstance(rows[0], list):
        rows = [rows]
    return "\n".join(", ".join(_text(x) for x in row) for row in rows)


def _weights(text: str) -> Any:
    """`2: 1, 5: 1/2` as a table; a list without colons as the weights of all context lengths."""
    if ":" not in text:
        return _list(text)
    table: dict[str, Any] = {}
    for entry in text.replace("\n", ",").split(","):
        if not entry.strip():
            continue
        length, colon, weight = entry.partition(":")
        if not colon:
            raise SpecError(f"{entry.strip()!r} has no colon; write e.g. 2: 1, 5: 1/2", ("weights",))
        if length.strip() in table:
            raise SpecError(f"context length {length.strip()} is given twice; keep one", ("weights",))
        table[length.strip()] = _number(weight)
    return table


def _parts(text: str) -> list[dict[str, Any]]:
    """Lines such as `0.5 gaussian scale=1`, or with the law as a JSON table."""
    parts = []
    for number, line in enumerate(filter(str.strip, text.splitlines())):
        probability, _, rest = line.strip().partition(" ")
        law: Any
        if rest.strip().startswith("{"):
            law = read_value(rest.strip())
        else:
            kind, *given = rest.split() or [""]
            law = {"kind": kind}
            for one in given:
                name, equals, value = one.partition("=")
                if not equals:
                    raise SpecError(
                        f"{one!r} is no parameter; write e.g. 0.5 gaussian scale=1", ("law", "parts", number)
                    )
                law[name] = _number(value)
        parts.append({"probability": _number(probability), "law": law})
    return parts


def _parts_text(parts: Any) -> str:
    return "\n".join(f"{_text(part['probability'])} {_law_text(part['law'])}" for part in parts)


def _law_text(law: Mapping[str, Any]) -> str:
    parameters = {name: value for name, value in law.items() if name != "kind"}
    if any(isinstance(value, list | Mapping | bool) for value in parameters.values()):
        return json.dumps(law)
    return " ".join([law["kind"], *(f"{name}={_text(value)}" for name, value in parameters.items())])


_LAW_READERS: dict[str, Any] = {
    "value": _value,
    "parts": _parts,
    "samples": _samples,
    "moments": _list,
    "joint": lambda text: text == "true",
}
_LAW_TEXTS: dict[str, Any] = {
    "value": lambda value: json.dumps(value) if isinstance(value, list) else _text(value),
    "parts": _parts_text,
    "samples": _rows_text,
    "moments": lambda moments: ", ".join(map(_text, moments)),
    "joint": lambda joint: "true" if joint else "",
}
