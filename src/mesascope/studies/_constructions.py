"""Specifications of weights with which layers of linear attention run an algorithm."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from mesascope.specs import Matrix, Numbers, Spec, kinds

if TYPE_CHECKING:
    from mesascope.theory import Construction


class GradientDescentSpec(Spec):
    """Every layer is a step of gradient descent.

    Attributes:
        step_sizes: one for each layer.
    """

    kind: Literal["gradient-descent"] = "gradient-descent"
    step_sizes: Numbers

    def build(self, dim: int) -> "Construction":
        """Return the weights of all layers."""
        from mesascope.theory import vonoswald2023

        return vonoswald2023.gradient_descent(dim, self.step_sizes)


class GradientDescentPlusPlusSpec(Spec):
    """Every layer is a step of GD++, which moves the inputs too.

    Attributes:
        step_sizes, curvatures: one for each layer.
    """

    kind: Literal["gradient-descent++"] = "gradient-descent++"
    step_sizes: Numbers
    curvatures: Numbers

    def build(self, dim: int) -> "Construction":
        """Return the weights of all layers."""
        from mesascope.theory import vonoswald2023

        return vonoswald2023.gradient_descent_plus_plus(dim, self.step_sizes, self.curvatures)


class PreconditionedSpec(Spec):
    """Every layer is a step of preconditioned gradient descent.

    Attributes:
        preconditioners: one matrix (dim, dim) for each layer.
        input_updates: likewise; all 0 when left out.
    """

    kind: Literal["preconditioned"] = "preconditioned"
    preconditioners: Annotated[tuple[Matrix, ...], Field(min_length=1)]
    input_updates: Annotated[tuple[Matrix, ...], Field(min_length=1)] | None = None

    def build(self, dim: int) -> "Construction":
        """Return the weights of all layers."""
        from mesascope.theory import ahn2023

        made = ahn2023.preconditioned_gradient_descent(self.preconditioners, self.input_updates)
        width = made.w_kq.shape[-1]
        if width != dim + 1:
            raise ValueError(f"is for inputs of dimension {width - 1}, but the process draws dimension {dim}")
        return made


ConstructionSpec: TypeAlias = Annotated[
    GradientDescentSpec | GradientDescentPlusPlusSpec | PreconditionedSpec,
    Field(discriminator="kind"),
    kinds("gradient-descent", "gradient-descent++", "preconditioned"),
]
"""A construction of weights, told apart by `kind`."""
