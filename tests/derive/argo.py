"""The health script in a Lua like Argo CD's: no `string`, no `os`, no `io`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lupa import lua51  # type: ignore[import-untyped]  # has no types

from derive import kstatus
from edge_operator.derive import health

SAME = {"Current": "Healthy", "InProgress": "Progressing", "Failed": "Degraded", "Terminating": "Progressing"}
"""What Argo CD says where kstatus says this."""
_ABSENT = ("string", "os", "io", "package", "require", "debug", "coroutine", "loadstring", "dofile", "loadfile")


def judge(resource: Mapping[str, Any]) -> tuple[str, str]:
    """Status and message that Argo CD shows for a resource."""
    lua, script = _runtime()
    found = script(lua.table_from(resource, recursive=True))
    return found["status"], found["message"]


def agrees(resource: Mapping[str, Any]) -> bool:
    """Whether Argo CD and kstatus say the same of a resource."""
    return judge(resource)[0] == SAME[kstatus.verdict(resource)]


@cache
def _runtime() -> tuple[Any, Any]:
    lua = lua51.LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
    for name in _ABSENT:
        lua.globals()[name] = None
    return lua, lua.execute(f"return function(obj)\n{health.SCRIPT}\nend")
