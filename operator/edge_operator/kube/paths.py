"""Paths of the Kubernetes API: of a collection, an object, a subresource; and what a path is about."""

from __future__ import annotations

import re

from edge_operator.kube import errors

_SEGMENT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?")


def resource(group: str, version: str, plural: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of an object or, without a name, of a collection; without a namespace, of the whole cluster.

    For example ("edge-operator.dev", "v1alpha1", "httpsedges", "demo", "web", "status") is
    /apis/edge-operator.dev/v1alpha1/namespaces/demo/httpsedges/web/status. The core group is "".

    Raises:
        ValueError: a part is no name; a name with a slash or dots alone would lead out of its collection.
    """
    parts = [f"/apis/{_checked(group)}" if group else "/api", _checked(version)]
    if namespace:
        parts += ["namespaces", _checked(namespace)]
    parts.append(_checked(plural))
    if name:
        parts.append(_checked(name))
    if subresource:
        parts.append(_checked(subresource))
    return "/".join(parts)


def secret(namespace: str, name: str = "") -> str:
    """The path of a Secret, or of the Secrets of a namespace."""
    return resource("", "v1", "secrets", namespace, name)


def about(path: str) -> str:
    """What a path is about: the plural, and the subresource if there is one; for example `httpsedges/status`.

    It names no object, so that a metric labelled by it stays small.
    """
    parts = path.strip("/").split("/")
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    if not parts:
        return "discovery"
    return f"{parts[0]}/{parts[2]}" if len(parts) > 2 else parts[0]


def _checked(part: str) -> str:
    if not _SEGMENT.fullmatch(part):
        raise ValueError(f"{part[: errors.FOREIGN_TEXT]!r} should be a name of letters, digits, '-', '.' and ':'")
    return part
