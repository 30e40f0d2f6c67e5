"""Where data come from: laws of the initial token, autoregressive processes, embeddings and tasks."""

from ._constant import Constant as Constant
from ._diagonal_unitary import DiagonalUnitary as DiagonalUnitary
from ._embedding import embed as embed
from ._embedding import embed_full as embed_full
from ._embedding import full_from_reduced as full_from_reduced
from ._embedding import reduced_from_full as reduced_from_full
from ._empirical import Empirical as Empirical
from ._gaussian import Gaussian as Gaussian
from ._law import MAX_ORDER as MAX_ORDER
from ._law import IdenticalLaw as IdenticalLaw
from ._law import Law as Law
from ._law import MomentError as MomentError
from ._law import ProductTerm as ProductTerm
from ._law import QuadratureTerm as QuadratureTerm
from ._law import Rule as Rule
from ._mixture import Mixture as Mixture
from ._moments import Moments as Moments
from ._rademacher import Rademacher as Rademacher
from ._sparse import Sparse as Sparse
from ._student import StudentT as StudentT
from ._task import NextToken as NextToken
from ._uniform import Uniform as Uniform
