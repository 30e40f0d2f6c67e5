"""A benchmark of methods that say which algorithm a model runs in context: models with known answers, and a scorer."""

from ._benchmark import Benchmark as Benchmark
from ._benchmark import Method as Method
from ._cases import GROUPS as GROUPS
from ._cases import Group as Group
from ._files import Answer as Answer
from ._files import Answers as Answers
from ._files import Manifest as Manifest
from ._files import read_json as read_json
from ._methods import METHODS as METHODS
from ._score import MARKS as MARKS
from ._score import Mark as Mark
from ._score import Score as Score
from ._score import score as score
from ._write import write_benchmark as write_benchmark
