"""What every room shares: numbers and their checks, results, random keys, the precision guard."""

from ._checks import exact as exact
from ._checks import finite_nonnegative as finite_nonnegative
from ._checks import finite_number as finite_number
from ._checks import finite_positive as finite_positive
from ._checks import integer_at_least as integer_at_least
from ._embedding import embed as embed
from ._embedding import embed_full as embed_full
from ._embedding import full_from_reduced as full_from_reduced
from ._embedding import reduced_from_full as reduced_from_full
from ._estimate import Estimate as Estimate
from ._keys import named_key as named_key
from ._keys import random_key as random_key
from ._keys import split_keys as split_keys
from ._lapack import eigh as eigh
from ._lapack import lu_factor as lu_factor
from ._matrix import covariance_matrix as covariance_matrix
from ._matrix import finite_reals as finite_reals
from ._precision import require_x64 as require_x64
from ._programs import forget_programs as forget_programs
