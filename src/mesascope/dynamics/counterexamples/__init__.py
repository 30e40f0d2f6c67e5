"""Laws that break a stated property of where training goes, with certificates in rational numbers."""

from ._counterexample import Counterexample as Counterexample
from ._counterexample import Searched as Searched
from ._counterexample import check_counterexample as check_counterexample
from ._families import FAMILIES as FAMILIES
from ._families import Family as Family
from ._properties import PROPERTIES as PROPERTIES
from ._properties import Property as Property
from ._search import counterexample as counterexample
from ._setting import Setting as Setting
