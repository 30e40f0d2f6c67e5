"""Write docs/ab.svg, the product ab along the exact gradient flow until its limit: `python docs/write_animation.py`.

The picture moves once, in less than five seconds, and again under the pointer; not at all for readers who ask their system for
less motion. It is drawn in the ink of the page that it is a part of, or in that of the reader's theme.
"""

from pathlib import Path

import numpy as np

import mesascope as ms

PICTURE = Path(__file__).with_name("ab.svg")
WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 628, 22, 212
FRAMES = 60
SECONDS = 4.5
STYLE = """:root { --ink: #000000; --paper: #FFFFFF; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #E8E8E8; --paper: #15181C; } }
.ab { font: 14px system-ui, sans-serif; max-width: 100%%; height: auto; }
.ab text { fill: var(--ink); }
@media (max-width: 600px) { .ab text { font-size: 24px; } }
.ab .axis { stroke: var(--ink); stroke-width: 1; fill: none; opacity: .55; }
.ab .limit { stroke: #009E73; stroke-width: 2; stroke-dasharray: 7 5; }
.ab .path { stroke: #D55E00; stroke-width: 3.5; fill: none; stroke-linecap: round; }
.ab .weights { fill: #D55E00; stroke: var(--paper); stroke-width: 2; }
@media (prefers-reduced-motion: no-preference) {
.ab .path { animation: ab-drawn %(seconds)ss linear; }
.ab .weights { animation: ab-moved %(seconds)ss linear; }
.ab:hover .path { animation-name: ab-drawn-again; }
.ab:hover .weights { animation-name: ab-moved-again; }
}
%(frames)s"""


def picture():
    """The animation, from the flow of the README: Gaussian tokens, d = 5, T = 100, start a = b = 0.1."""
    ms.enable_x64()
    process, task = ms.DiagonalUnitary(ms.Gaussian(scale=1.0), dim=5), ms.NextToken(horizon=100)
    flow = ms.gradient_flow(ms.LinearAttention.diagonal(dim=5, a=0.1, b=0.1), process, task)
    limit = float(ms.theory.zheng2024.limit_product(process, task))
    return drawn(np.asarray(flow.times), np.asarray(flow.products)[:, 0], limit)


def drawn(times, products, limit):
    """The curve of the products, its limit, and a point that moves at the speed of the flow."""
    end = 1.25 * times[np.argmax(products > 0.999 * limit)]
    shown = np.linspace(0, end, FRAMES + 1)
    values = np.interp(shown, times, products)
    xs = LEFT + (RIGHT - LEFT) * shown / end
    ys = BOTTOM - (BOTTOM - TOP) * values / (1.15 * limit)
    level = BOTTOM - (BOTTOM - TOP) / 1.15
    points = [f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True)]
    moved = [
        f"{100 * n / FRAMES:.4g}% {{ transform: translate({x:.1f}px, {y:.1f}px) }}"
        for n, (x, y) in enumerate(zip(xs, ys, strict=True))
    ]
    frames = "\n".join(
        f"@keyframes ab-drawn{again} {{ from {{ clip-path: inset(-9px 100% -9px -9px) }} "
        f"to {{ clip-path: inset(-9px -9px -9px -9px) }} }}\n"
        f"@keyframes ab-moved{again} {{ {' '.join(moved)} }}"
        for again in ("", "-again")
    )
    style = STYLE % {"seconds": SECONDS, "frames": frames}
    said = (
        f"The product ab of the weights of the layer rises from {products[0]:.2f} along the exact gradient flow and stays "
        f"at its limit, {limit:.4f}"
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" class="ab" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" \
height="{HEIGHT}" role="img" aria-label="{said}"><style>{style}</style>
<path class="axis" d="M{LEFT},{TOP - 8}V{BOTTOM}H{RIGHT}"/>
<path class="limit" d="M{LEFT},{level:.1f}H{RIGHT}"/>
<text x="{RIGHT + 8}" y="{level + 5:.1f}">{limit:.4f}</text>
<text x="{LEFT - 10}" y="{BOTTOM + 5}" text-anchor="end">0</text>
<text x="{LEFT - 10}" y="{TOP + 2}" text-anchor="end" font-style="italic">ab</text>
<text x="{LEFT}" y="{BOTTOM + 24}">0</text>
<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 24}" text-anchor="middle">flow time</text>
<text x="{RIGHT}" y="{BOTTOM + 24}" text-anchor="end">{end:.2g}</text>
<polyline class="path" points="{" ".join(points)}"/>
<circle class="weights" r="7" style="transform: translate({xs[-1]:.1f}px, {ys[-1]:.1f}px)"/>
</svg>
"""


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
