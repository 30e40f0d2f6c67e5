"""What was found here that the papers do not say: written once for the page of the documentation and for the lab."""

from __future__ import annotations

from dataclasses import dataclass

from ._claim import one_line


@dataclass(frozen=True)
class Insight:
    """One finding.

    Attributes:
        claim: id of the claim that proves or measures it, of origin `ours`; its title is the finding's.
        text: one paragraph that needs no other page.
        formula: LaTeX.
        figure: name of a figure of that claim.
        page: name of the page that says more, if it is not the paper's.
    """

    claim: str
    text: str
    formula: str
    figure: str
    page: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))


INSIGHTS = (
    Insight(
        "zheng2024/recovery-gap",
        """A trained layer of linear attention takes one step of gradient descent with one step size for all sequences. One step
            size is right only if all tokens that are not 0 have the same size. With ever more context its risk per coordinate
            therefore tends to a number that the law of the first token fixes: it is 0 exactly when |x| takes one value besides
            0, and 0.4 of the variance for Gaussian tokens. The paper's Assumption 4.2 is thus a property of the law and not of
            the training.""",
        (
            r"\lim_{T, t \to \infty} \mathrm{E}\,(\hat y_j - x_j)^2 = \mathrm{E} x^2 - \frac{(\mathrm{E} "
            r"x^4)^2}{\mathrm{E} x^6}"
        ),
        "recovery-gap",
    ),
    Insight(
        "zheng2024/skewed-tokens",
        """Assumption 4.1 asks that products of coordinates with a factor to the first power have mean zero. That is known
            second-hand. It is not enough: for independent tokens 2 and −1 with probabilities 1/3 and 2/3 all these means
            vanish, but cubes of two coordinates have a mean of 4. The gradient then does not vanish off the diagonal, training
            leaves the diagonal, and it ends below the loss of Theorem 4.1's limit.""",
        r"\mathrm{E} x_p = 0, \qquad \mathrm{E} x_p^3 x_r^3 = (\mathrm{E} x^3)^2 = 4 \neq 0",
        "skewed-tokens",
    ),
    Insight(
        "zheng2024/random-starts",
        """From random weights training ends at the paper's product with random signs: at one of 2^d points of exactly the same
            loss, of which the paper's limit is one. In every coordinate both weights may change their sign together: the loss
            depends on a_j², b_j² and a_j b_j only. `zheng2024/signed-diagonals-certified` proves that these are minima, by
            exact arithmetic.""",
        (
            r"L\bigl(s_1 a_1, s_1 b_1, \ldots, s_d a_d, s_d b_d\bigr) = L(a_1, b_1, \ldots, a_d, b_d), \qquad s_j = \pm"
            r" 1"
        ),
        "random-starts",
    ),
    Insight(
        "zheng2024/trajectory",
        """From equal diagonal weights the whole training path is an elementary function, not only its end: a² − b² stays what
            it was, and the square of a + b is a ratio of exponentials with one rate. Nothing has to be integrated to know where
            training is at any time.""",
        (
            r"\delta = a^2 - b^2, \qquad z = (a + b)^2, \qquad "
            r"z' = -\tfrac{\alpha}{2} (z - z_+)(z - z_-), \qquad "
            r"z_\pm = 2 c_* \pm \sqrt{4 c_*^2 + \delta^2}"
        ),
        "trajectory",
    ),
    Insight(
        "zhang2024/other-starts",
        """The theorem on linear regression needs its start. From random entries in all weights a part of the flows ends
            elsewhere, at a local minimum of higher risk: the layer then learns a matrix of rank one, answers along one
            direction, and no small change of the weights lowers the risk.""",
        r"\hat y = x_q^\top u v^\top \, \tfrac{1}{N} \sum_i x_i y_i",
        "other-starts",
    ),
    Insight(
        "gatmiry2024/minimizer-is-not-symmetric",
        """One matrix, looped two or three times and fitted to regression prompts, is reported to be close to the inverse
            covariance. With whitened inputs and enough examples the best matrix is not symmetric: an antisymmetric part lowers
            the loss of three loops by a tenth, because its complex eigenvalues act as different step sizes would.""",
        r"A \approx a I + K, \qquad K^\top = -K, \qquad \text{eigenvalues } a \pm i s",
        "minimizer-is-not-symmetric",
    ),
    Insight(
        "gatmiry2024/extra-loops-turn",
        """More loops than the layer was fitted for lower the loss at first. The exact mean over prompts then turns: for the
            best multiple of the inverse covariance a few prompts with a large eigenvalue of the Gram matrix diverge and take
            the mean with them, while the loss of the median prompt keeps falling.""",
        r"\mathrm{E} \sum_k (1 - a s_k)^{2L} \to \infty \quad (L \to \infty) \qquad \text{for every } a > 0",
        "extra-loops",
    ),
    Insight(
        "vonoswald2024/second-block",
        """Trained on sequences one layer of linear attention is one step of gradient descent and a little more. Besides the
            products s_{i−1}·s_t of the construction it uses a negative multiple of s_i·s_{t−1}. This lowers the loss, for the
            paper's sums and more so for means. The layer that the authors store has it, too.""",
        (
            r"\hat s_{t+1} = \sum_{i \le t} \bigl(\eta\, s_{i-1}^\top s_t - \zeta\, s_i^\top s_{t-1}\bigr)\, s_i, "
            r"\qquad \zeta > 0"
        ),
        "second-block",
    ),
    Insight(
        "vonoswald2024/few-shot-exact",
        """A layer that learned from sequences solves few-shot tasks x_1, y_1, x_2, y_2, … by a step on all neighbours, the
            useless pairs (label, next input) among them. Where attention takes the mean the first of these steps are large:
            the error rises above that of the answer 0 before it falls. End tokens 0 remove the useless pairs. Below, η is the
            step on m examples, σ the noise, v = E x_j² for every entry j, q = E ‖x‖² x_j², and u = v + σ².""",
        (
            r"\mathrm{E} \|\hat y - y\|^2 = \mathrm{E} \|\hat y_{\text{examples}} - y\|^2 "
            r"+ \eta^2 d\, u \bigl((m - 1)\, d v^2 + q\bigr)"
        ),
        "few-shot-exact",
    ),
    Insight(
        "sander2024/double-count",
        """For independent eigenvalues the loss of the authors' program counts one term twice. Descent on that loss gives the
            weights that they store to the last digits of single precision; descent on the right loss does not. Both losses have
            the same minimisers, so that no statement of the paper depends on it.""",
        r"L_{\text{program}} - L = p_{T-1}^2\, \lVert C \rVert_F^2",
        "double-count",
    ),
    Insight(
        "sander2024/positions-alone",
        """Where only the positions p are learned, n steps of gradient descent from 0 with rate η have a closed form, with the
            last unit vector e_T and the matrix G of means of Re λ^{2(s−t)} over the eigenvalue λ. For angles of λ that are
            uniform on an interval the eigenvectors of G are the discrete prolate spheroidal sequences: p is their sum, and
            those with large eigenvalues come first. The matrices that the authors store are this sum, up to the 2 % that
            1000 drawn angles leave open. At the minimum only the last position is not 0; training stopped far from it,
            where the loss had fallen to 10⁻³.""",
        r"p_n = \bigl(I - (I - 2 \eta G)^n\bigr)\, e_T",
        "positions-alone",
    ),
    Insight(
        "lu2024/mean-of-the-pool",
        """Besides Σ y x a layer of linear attention reads Σ y². On prompts of few tasks it uses this second number, which says
            nothing about the task, to answer the mean of the pool: that lowers the loss of training and adds 1/K to the error
            on new tasks. Without that number errors at d = 80 are those of the limit d → ∞ to a few thousandths: for fewer
            tasks than dimensions it is most of what separates this dimension from the formula.""",
        r"e_{\text{new}} \approx e_\infty(\alpha, \kappa) + \frac1K \qquad (K \ll d)",
        "mean-of-the-pool",
    ),
    Insight(
        "lu2024/map",
        """A layer that is trained to the end on a small pool can be worse on new tasks than one that answers 0. For many
            dimensions the border α(κ) is the root of a cubic polynomial: it exists for fewer tasks than dimensions only, and
            tends to ℓ = (1 + ρ) d examples for few tasks. At d = 20 two or four tasks are harmful even with 200 examples.
            Beside this region lies another, where the end is better than 0 and stopping the flow early is better still. The
            flow is that of the reduced layer Γ, from 0.""",
        r"e_{\text{new}}(\alpha, \kappa) = 1 + \rho, \qquad \lim_{\kappa \to 0} \alpha(\kappa) = 1 + \rho",
        "map",
        page="pools",
    ),
    Insight(
        "yang2024/random-keys",
        """Of what the delta rule recalls better than linear attention a part is a matter of scale. With rate 1 and keys of 16
            entries, random on the unit sphere, its error is lower only up to ten pairs, once linear attention may
            scale its answers. With its best rate and gain the delta rule is always better: by two fifths for two pairs, by a
            hundredth for 64.""",
        (
            r"\min_\kappa \mathrm{E}\,|\kappa M_{\text{sum}} k_j - v_j|^2 = \frac{N - 1}{N - 1 + d}, \qquad "
            r"\min_M \mathrm{E}\,|M k_j - v_j|^2 = \max\bigl(0, 1 - \tfrac dN\bigr)"
        ),
        "recall",
    ),
    Insight(
        "bordelon2025/isotropic-best",
        """How much is a layer of linear attention worth? On isotropic prompts of large dimension d with αd examples, layers
            that are gradient steps with the best sizes leave one over the sum of the first powers of α of the task. With more
            examples than dimensions each further layer lowers the error by the factor α; with fewer none gets below the part
            of the task that no example shows. For ten examples a dimension two layers leave a hundredth, and the best sizes
            are inverse points of Chebyshev's.""",
        (
            r"\min_{a_1, \dots, a_L} \frac{\mathrm{E}\,(\hat y - y)^2}{\mathrm{E}\, y^2} = "
            r"\frac{1}{1 + \alpha + \dots + \alpha^L}, \qquad \frac1{a_k} = 1 + \frac1\alpha + "
            r"\frac2{\sqrt\alpha} \cos\frac{k\pi}{L + 1}"
        ),
        "isotropic",
    ),
    Insight(
        "edelman2024/saddle",
        """Why does a transformer wait at unigrams before it learns bigrams? The loss sees keys and queries only through the
            product of their matrices: where both are 0, neither has a gradient. A small transformer whose attention is uniform
            first learns all that uniform attention can, and is then at a saddle. Only keys and queries lead away, slowly
            at first, at a rate that is the largest singular value of a matrix: the loss near the saddle is bilinear in the keys
            and queries of each layer.""",
        (
            r"L = L_0 + \sum_\ell \langle G_\ell, W_{K,\ell}^\top W_{Q,\ell} \rangle + \dots, \qquad "
            r"\text{curvatures } \pm \sigma_i(G_\ell), \qquad \text{rate } \max_{\ell, i} \sigma_i(G_\ell)"
        ),
        "saddle",
    ),
    Insight(
        "nichani2024/two-parents-information",
        """In a tree no earlier symbol tells more about a symbol than its parent; this is why the gradient of attention shows
            the edges. With two parents it need not be so. In chains of order two on two symbols, with tables that are nearly
            functions (α = 0.1), the symbol six before tells in the mean more than either parent: some tables ignore a parent,
            and if s_i is the exclusive or of the two symbols before it, neither alone tells anything while the symbol three
            before tells all. With more symbols, or even tables, the parents tell most.""",
        (
            r"s_i = s_{i-1} \oplus s_{i-2} \;\Rightarrow\; s_i = s_{i-3}, \qquad "
            r"\mathrm{E}\, I(s_i; s_{i-6}) > \mathrm{E}\, I(s_i; s_{i-1}) \quad (\alpha = 0.1)"
        ),
        "two-parents-information",
    ),
)
"""In the order in which they are listed."""
