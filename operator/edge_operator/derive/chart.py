"""What Helm and Argo CD read: copies of the CRDs, the rules of the roles, the health script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from edge_operator.declare import CustomResource
from edge_operator.derive import access, crd, documents, health
from edge_operator.derive.documents import header


def crd_template(kind: CustomResource[Any], source: str) -> str:
    """A CRD that an upgrade brings up to date and an uninstall leaves: with it would go every resource."""
    manifest = crd.crd(kind)
    manifest["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    text = documents.dump(manifest)
    if "{{" in text:
        raise ValueError(f"{kind.name}: Helm would read the braces of {text[text.index('{{') :][:40]!r}")
    return f"{_comment(source)}{{{{- if .Values.crds.enabled }}}}\n{text}{{{{- end }}}}\n"


def rules_template(kinds: Iterable[CustomResource[Any]], *sources: str) -> str:
    """Named templates with the rules of every role."""
    kinds = list(kinds)
    named = {
        "watched": access.watched(kinds),
        "cluster": access.cluster(kinds),
        "identity": access.identity(),
        "definitions": access.definitions(kinds),
        "own": access.own(kinds),
        "drain": access.drain(kinds),
        "view": access.view(kinds),
        "edit": access.edit(kinds),
    }
    blocks = [
        f'{{{{- define "edge-operator.rules.{name}" -}}}}\n{documents.dump(rules)}{{{{- end }}}}\n'
        for name, rules in named.items()
    ]
    return _comment(*sources) + "\n".join(blocks)


def health_config(kinds: Iterable[CustomResource[Any]], *sources: str) -> str:
    """The patch that teaches Argo CD the health of every kind."""
    return f"# {header(sources)}\n{documents.dump(health.config_map(kinds))}"


def values_table(values: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Every value of the chart with its default and its meaning, as the schema has it."""
    return "\n".join(["| Value | Default | Meaning |", "|---|---|---|", *_values(values, schema, "")]) + "\n"


def _values(values: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, member in schema["properties"].items():
        if "properties" in member:
            yield from _values(values[name], member, f"{path}{name}.")
        elif name in values:
            yield f"| `{path}{name}` | `{json.dumps(values[name])}` | {member['description']} |"


def _comment(*sources: str) -> str:
    return f"{{{{- /* {header(sources)} */ -}}}}\n"
