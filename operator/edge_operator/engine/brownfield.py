"""Writes a spec for what an account already holds: the projection the other way round."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from edge_operator.declare import GROUP, VERSION, Body, Kind, Part, TLSSecretRef
from edge_operator.engine import compare, marker
from edge_operator.engine.operations import shown
from edge_operator.engine.project import Field, fields


@dataclass(frozen=True)
class Manifest:
    """A custom resource that adopts a remote object, and what has to be there before it can be in sync.

    `obstacle` says why no resource can be like this object, for example a backend that has no children.
    """

    document: dict[str, Any]
    needs: tuple[str, ...] = ()
    obstacle: str = ""


def manifest(kind: Kind[Any], answer: Body, namespace: str) -> Manifest | None:
    """The resource that adopts this object without changing it; None if the object has an owner already.

    Its deletionPolicy is Retain: what was there before Kubernetes stays when the resource goes.
    """
    own, who = marker.split(str(answer.get("metadata") or ""))
    if who is not None:
        return None
    name = name_of(kind, answer["id"])
    needs: list[str] = []
    held = {**compare.held(kind, answer), "metadata": own}
    spec: dict[str, Any] = {"externalID": answer["id"], "deletionPolicy": "Retain"}
    for field in fields(kind.spec):
        if field.local:
            continue
        if field.in_path:
            spec[field.alias] = {"id": answer[field.in_path]}
        elif _uploads(kind, field):
            spec[field.alias] = {"name": f"{name}-tls"}
            needs.append(f"Secret {name}-tls of the type kubernetes.io/tls with the certificate that was uploaded")
        elif _said(kind.spec, field, held):
            value = held[field.wire]
            spec[field.alias] = _value(field, value, field.alias, name, needs)
    if "allow_any_principal" in kind.spec.model_fields and not spec.get("principals"):
        spec["allowAnyPrincipal"] = True
    document = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    return Manifest(document, tuple(needs), _obstacle(kind, spec))


def _obstacle(kind: Kind[Any], spec: Mapping[str, Any]) -> str:
    try:
        kind.spec.model_validate(spec)
    except ValidationError as error:
        return shown("; ".join(f"spec.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()))
    return ""


def name_of(kind: Kind[Any], id_: str) -> str:
    """A name for the resource that is the same whenever it is made: `weightedbackend-1f2e3d4c5b`."""
    return f"{kind.name.lower()}-{hashlib.sha256(id_.encode()).hexdigest()[:10]}"


def _uploads(kind: Kind[Any], field: Field) -> bool:
    return kind.spec.model_fields[field.name].annotation is TLSSecretRef


def _value(field: Field, value: Any, at: str, name: str, needs: list[str]) -> Any:
    """One field's value as a user would write it. `at` is its path, which a Secret's key is named after."""
    if field.text:
        return {"value": value}
    if field.secret:
        needs.append(f"key {at!r} in Secret {name} with the value that the service holds")
        return {"secretKeyRef": {"name": name, "key": at}}
    if field.keyed and field.part is not None:
        inner = {f.name: f.alias for f in fields(field.part)}
        by, weight = inner[field.keyed.by], inner[field.keyed.value]
        return [{by: {"id": key}, weight: item} for key, item in value.items()]
    if field.reference is not None:
        return [{"id": item} for item in value] if isinstance(value, list) else {"id": value}
    if field.part is not None and isinstance(value, Mapping):
        inside = [f for f in fields(field.part) if _said(field.part, f, value)]
        return {f.alias: _value(f, value[f.wire], f"{at}.{f.alias}", name, needs) for f in inside}
    return value


def _said(part: type[Part], field: Field, value: Mapping[str, Any]) -> bool:
    """Whether a manifest has to say what the service holds there: something, or nothing where something has to stand.

    A secret that the service does not return is there all the same.
    """
    held = value.get(field.wire)
    if field.secret and not field.text:
        return field.wire in value
    return held not in (None, [], {}, "") or (held is not None and part.model_fields[field.name].is_required())
