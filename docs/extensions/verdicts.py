"""The directive `verdicts`: how many claims have which outcome, from the records that come with the package."""

import posixpath
from collections import Counter

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from mesascope.papers import PAPERS, claims, shipped_record
from mesascope.records import SHIPPED, SIGNS


class Verdicts(SphinxDirective):
    """A strip as wide as the claims are many, and a line for every outcome; it leads to the claims."""

    def run(self) -> list[nodes.Node]:
        """The strip, as HTML."""
        for file in SHIPPED.rglob("*.json"):
            self.env.note_dependency(str(file))
        found = [(claim, record) for claim in claims() if (record := shipped_record(claim))]
        counts = Counter(record.outcome for _, record in found)
        ours = sum(claim.origin == "ours" for claim, _ in found)
        leads = posixpath.relpath("papers/README", posixpath.dirname(self.env.docname) or ".") + ".html"
        parts = "".join(
            f'<span class="{_class(one)}" style="flex-grow:{counts[one]}"></span>'
            for one in SIGNS
            if counts[one]
        )
        lines = "".join(
            f'<li class="{_class(one)}"><b>{counts[one]}</b> {sign} {one}</li>' for one, sign in SIGNS.items()
        )
        said = f"{len(found)} claims: {len(found) - ours} of {len(PAPERS)} papers, {ours} our own"
        html = (
            f'<div class="verdicts"><div class="strip" aria-hidden="true">{parts}</div>'
            f'<ul>{lines}</ul><p><a href="{leads}">{said}</a></p></div>'
        )
        return [nodes.raw("", html, format="html")]


def _class(outcome: str) -> str:
    return outcome.replace(" ", "-")


def setup(app):
    """Add the directive."""
    app.add_directive("verdicts", Verdicts)
    return {"parallel_read_safe": True}
