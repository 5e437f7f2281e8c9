"""Every kind, found by looking: one module, one `KIND`. Nothing else lives here, and kinds never import each other."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from edge_operator.declare import Kind

KINDS: dict[str, Kind[Any]] = {
    kind.name: kind for kind in (import_module(f"{__name__}.{m.name}").KIND for m in iter_modules(__path__))
}
