"""How every claim is tested: small settings under which it verifies, and a world that is wrong on purpose.

One module per paper, named by its bib key, with `CASES`: claim id → `Case`.
"""

from ._case import Case as Case
from ._case import at_rest as at_rest
from ._case import cases_of as cases_of
from ._case import scaled as scaled
from ._case import short_grids as short_grids
from ._case import with_models as with_models
from ._case import writes_more as writes_more
