"""Every kind, found by looking: one module, one `KIND`. Nothing else lives here, and kinds never import each other."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from edge_operator.declare import Companion, CustomResource, Kind

DECLARED: dict[str, CustomResource[Any]] = {
    found.name: found for found in (import_module(f"{__name__}.{m.name}").KIND for m in iter_modules(__path__))
}
"""All types of custom resources by name."""
KINDS: dict[str, Kind[Any]] = {name: found for name, found in DECLARED.items() if isinstance(found, Kind)}
"""Those that stand for a remote object each."""
COMPANIONS: dict[str, Companion[Any]] = {
    name: found for name, found in DECLARED.items() if isinstance(found, Companion)
}
"""The others."""
MIRRORS: dict[str, Companion[Any]] = {name: found for name, found in COMPANIONS.items() if found.mirror}
"""Those that the operator alone writes."""
WATCHED: dict[str, CustomResource[Any]] = {name: found for name, found in DECLARED.items() if name not in MIRRORS}
"""All that people write, and that the operator therefore watches."""
