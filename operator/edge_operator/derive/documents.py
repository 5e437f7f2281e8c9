"""YAML as derived files have it: in the order given, without anchors, long texts as blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


class _Loader(yaml.SafeLoader):
    """Reads YAML as the API server does: a time is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def dump(value: Any) -> str:
    """One document."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


def load(text: str) -> list[Any]:
    """Every document of a text that is not empty."""
    return [document for document in yaml.load_all(text, Loader=_Loader) if document]


def header(sources: Iterable[str]) -> str:
    """The first line of a derived file."""
    return f"derived from {', '.join(sources)} by `make derive`; do not edit"
