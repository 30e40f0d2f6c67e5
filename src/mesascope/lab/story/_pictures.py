"""Drawings of the story that do not move, as SVG."""

from collections.abc import Sequence


def histogram(counts: Sequence[float]) -> str:
    """Return a small histogram: bars of these heights, the highest as high as the drawing."""
    top, wide = max(counts) or 1, 100 / len(counts)
    bars = "".join(
        f'<rect x="{wide * k:.1f}" y="{40 - 38 * count / top:.1f}" width="{wide:.1f}" height="{38 * count / top:.1f}"/>'
        for k, count in enumerate(counts)
    )
    return f'<svg viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'


def model() -> str:
    """Return the layer as a drawing: earlier tokens, the comparison (a), the sum of what followed (b), the answer."""
    tokens = "".join(
        f'<rect x="{20 + 84 * k}" y="150" width="64" height="36" rx="6" class="story-box"/>'
        f'<text x="{52 + 84 * k}" y="173" class="story-label" text-anchor="middle">{name}</text>'
        for k, name in enumerate(("x₁", "x₂", "x₃", "…", "x_t".replace("_t", "ₜ")))
    )
    compared = "".join(
        f'<path d="M388 150C388 {118 - 6 * k} {52 + 84 * k} {118 - 6 * k} {52 + 84 * k} 148" class="story-line story-a"/>'
        for k in range(3)
    )
    followed = "".join(
        f'<path d="M{136 + 84 * k} 150C{136 + 84 * k} 96 {440} 96 {446} 62" class="story-line story-b"/>'
        for k in range(2)
    )
    return (
        '<svg viewBox="0 0 560 200" class="story-model" role="img" aria-label="The last token is compared with every '
        'earlier token, with strength a; what followed each of them is added up, with strength b, to the answer.">'
        f"{tokens}{compared}{followed}"
        '<rect x="404" y="20" width="144" height="42" rx="6" class="story-box"/>'
        '<text x="476" y="46" class="story-label" text-anchor="middle">ŷ: next token?</text>'
        '<text x="160" y="84" class="story-label story-a">a: how alike?</text>'
        '<text x="216" y="52" class="story-label story-b">b: what followed?</text></svg>'
    )
