"""The landscape of an objective: critical points and their kinds, symmetries, conserved quantities, invariant manifolds."""

from ._conserved import ConservedQuantities as ConservedQuantities
from ._conserved import conserved_quantities as conserved_quantities
from ._critical_point import CriticalPoint as CriticalPoint
from ._critical_point import Polishing as Polishing
from ._critical_point import critical_point as critical_point
from ._critical_points import CriticalPoints as CriticalPoints
from ._critical_points import FoundPoint as FoundPoint
from ._critical_points import critical_points as critical_points
from ._invariant_manifold import BLOCKS as BLOCKS
from ._invariant_manifold import InvariantManifold as InvariantManifold
from ._invariant_manifold import ReducedLinearAttention as ReducedLinearAttention
from ._plateaus import Plateau as Plateau
from ._plateaus import Plateaus as Plateaus
from ._plateaus import plateaus as plateaus
from ._stability import Stability as Stability
from ._stability import observed_rate as observed_rate
from ._stability import stability as stability
from ._symmetry import Symmetries as Symmetries
from ._symmetry import symmetries as symmetries
