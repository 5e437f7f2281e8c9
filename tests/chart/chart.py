"""The chart as Helm renders it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edge_operator.derive import documents
from harness import binaries
from harness.cluster import run

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "edge-operator"
API = {"api": {"url": "https://api.example.com", "keySecret": {"name": "key"}}}
"""The least that has to be said."""

Manifest = dict[str, Any]


def helm(*args: str | Path, values: Mapping[str, Any] | None = None) -> str:
    """What helm prints, without a cluster.

    Raises:
        CommandError: helm ended with an error.
    """
    stdin = json.dumps(values) if values is not None else None
    return run([binaries.find("helm"), *args, *(["--values", "-"] if values is not None else [])], input=stdin)


def render(values: Mapping[str, Any] | None = None, *options: str, api: bool = True) -> list[Manifest]:
    """Every object of a release named `edge` in the namespace `tunnels`."""
    given = {**(API if api else {}), **(values or {})}
    text = helm("template", "edge", CHART, "--namespace", "tunnels", *options, values=given)
    return documents.load(text)


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    """The objects of one kind."""
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def named(manifests: Sequence[Manifest], kind: str, name: str) -> Manifest:
    """The one object of this kind and name."""
    (found,) = (manifest for manifest in of_kind(manifests, kind) if manifest["metadata"]["name"] == name)
    return found


def container(deployment: Manifest) -> Manifest:
    """The only container of a Deployment."""
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    inner: Manifest = found
    return inner


def env(deployment: Manifest) -> dict[str, Any]:
    """The environment of a Deployment's container: values, and sources where there is no value."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(deployment).get("env", [])}
