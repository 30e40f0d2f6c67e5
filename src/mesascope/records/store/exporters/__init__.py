"""Runs in the forms of other programs; what only some users have is imported when it is asked for."""

from ._export import Format as Format
from ._export import export_runs as export_runs
from ._export import write_netcdf as write_netcdf
