"""The option of all commands with specifications: files that declare kinds."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import UseAppendAction, arg


@dataclass(frozen=True, kw_only=True)
class PluginOption:
    """A command that can use kinds of the user's own."""

    plugin: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="FILE")] = ()
    """Python file that declares kinds of your own (laws, processes, …), in addition to `plugins` in SPEC."""


def forget_plugins(command: object) -> None:
    """Let specifications of other commands of this process not list the plugins of this one; their kinds stay known."""
    if getattr(command, "plugin", ()):
        from mesascope.specs import set_default_plugins

        set_default_plugins(())
