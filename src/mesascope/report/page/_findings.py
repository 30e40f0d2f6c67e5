"""Certificates and identifications in the page."""

from collections.abc import Mapping
from fractions import Fraction

from .._material import CertificateEntry, IdentificationEntry
from ._claims import provenance_html
from ._figures import figure_html
from ._html import Markup, join, tag
from ._values import brief, folded, listing, number, scrolled, specification

_VERDICTS = {
    "identified": ("✓", "holds"),
    "ambiguous": ("?", "undecided"),
    "none": ("✗", "contradicted"),
}


def certificate_html(count: int, entry: CertificateEntry) -> Markup:
    """A certificate: its statement, its radius, and the point."""
    record, anchor = entry.record, f"certificate-{count}"
    radius, free = _rounded(record.radius), _rounded(record.unique_within or "0")
    facts = {
        "radius": f"exactly one critical point within {number(radius)}" if radius else "the point itself",
        "no other within": number(free) if free else "not proved",
        "eigenvalues of the Hessian": f"{record.positive} positive, {record.negative} negative, {record.zero} zero",
        "loss between": " and ".join(record.loss),
        "a_j b_j": record.theorem or [" … ".join(ends) for ends in record.products],
    }
    point = {"w_kq": record.w_kq, "w_pv": record.w_pv}
    return tag(
        "section",
        tag("h2", f"Certificate {entry.file.name}", id=anchor),
        tag("ul", *(tag("li", sentence) for sentence in record.statement)),
        tag("dl", *(join(tag("dt", name), tag("dd", brief(value))) for name, value in facts.items())),
        tag(
            "p",
            "This page shows the certificate; ",
            tag("code", "mesascope certify --check"),
            " proves it again.",
        ),
        folded("The centre", specification(point)),
        folded("Specification", specification(record.spec)),
        provenance_html(record.provenance),
        aria_labelledby=anchor,
    )


def _rounded(rational: str) -> float:
    return float(Fraction(rational))


def identification_html(count: int, entry: IdentificationEntry, names: Mapping[int, str]) -> Markup:
    """An identification: its verdict with reasons, the ranking with intervals, figures."""
    record, anchor = entry.record, f"identification-{count}"
    sign, look = _VERDICTS[record.verdict]
    named = ", ".join(record.candidates) or "no learner within the tolerance"
    separations = [one.model_dump(mode="json") for one in record.separated_by]
    return tag(
        "section",
        tag(
            "h2",
            f"Which algorithm: {named} ",
            tag("span", f"{sign} {record.verdict}", class_=f"outcome {look}"),
            id=anchor,
        ),
        tag(
            "p",
            f"On {record.process}, {record.task}; {record.tasks} tasks, seed {record.seed}, "
            f"tolerance {number(record.tolerance)}.",
        ),
        tag("ul", *(tag("li", reason) for reason in record.reasons)),
        _ranking(entry),
        *(figure_html(names[id(figure)], figure) for _, figure in entry.figures),
        folded("Other data on which candidates were compared", listing({"asked on": separations}))
        if separations
        else None,
        folded("What the weights say", listing(record.reading.model_dump(mode="json")))
        if record.reading
        else None,
        folded("Specification", specification(record.spec)),
        provenance_html(record.provenance),
        aria_labelledby=anchor,
    )


def _ranking(entry: IdentificationEntry) -> Markup:
    record = entry.record
    columns = ("learner", "distance", f"{100 * record.level:g} % interval", "hyperparameters", "contains")
    body = [
        tag(
            "tr",
            tag("th", one.learner, scope="row"),
            tag("td", brief(one.distance)),
            tag("td", brief(one.interval)),
            tag("td", brief(one.hyperparameters)),
            tag("td", ", ".join(one.contains)),
        )
        for one in record.ranking
    ]
    head = tag("tr", *(tag("th", name, scope="col") for name in columns))
    caption = tag("caption", "Learners by their distance from the model")
    return scrolled(tag("table", caption, tag("thead", head), tag("tbody", *body)))
