"""Runs in the formats of other programs; optional packages are imported when they are used."""

from ._export import BEGINNINGS as BEGINNINGS
from ._export import Format as Format
from ._export import export_runs as export_runs
from ._export import is_study as is_study
from ._export import write_netcdf as write_netcdf
