"""Closed forms and constructions of the literature, one module per paper; all formulas are derived, not fitted."""

from . import ahn2023 as ahn2023
from . import bordelon2025 as bordelon2025
from . import edelman2024 as edelman2024
from . import fu2024 as fu2024
from . import gatmiry2024 as gatmiry2024
from . import giannou2024 as giannou2024
from . import huang2024 as huang2024
from . import kim2024 as kim2024
from . import lu2024 as lu2024
from . import mahankali2024 as mahankali2024
from . import nichani2024 as nichani2024
from . import park2024 as park2024
from . import raventos2023 as raventos2023
from . import sander2024 as sander2024
from . import vladymyrov2024 as vladymyrov2024
from . import vonoswald2023 as vonoswald2023
from . import vonoswald2024 as vonoswald2024
from . import vonoswald2025 as vonoswald2025
from . import wang2025 as wang2025
from . import wurgaft2025 as wurgaft2025
from . import yang2024 as yang2024
from . import zhang2024 as zhang2024
from . import zhang2025 as zhang2025
from . import zheng2024 as zheng2024
from ._construction import Construction as Construction
