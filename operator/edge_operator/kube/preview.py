"""`edge-operator plan`: what would be done for manifests, and why, against the live account; nothing is done.

The same line as the operator's, up to the plan. Secret values are read, because differences show in them, and are
never printed.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

import yaml

from edge_operator.declare import GROUP, VERSION, Kind, SecretKeyRef
from edge_operator.engine import marker, references, state
from edge_operator.engine.operations import (
    Claim,
    Create,
    Delete,
    DeleteModule,
    Disown,
    Operation,
    Publish,
    PutModule,
    Read,
    Release,
    Stalled,
    TakeOver,
    Unsupported,
    Update,
    Waiting,
)
from edge_operator.engine.reasons import Stalls
from edge_operator.engine.references import ConnectionKey, Named, Referent
from edge_operator.engine.state import Identity
from edge_operator.kinds import KINDS
from edge_operator.kube import bootstrap, errors, lookup, paths
from edge_operator.kube.client import KubeAPI
from edge_operator.kube.cluster import KubeCluster, path
from edge_operator.kube.index import Index
from edge_operator.kube.lookup import Accounts, Given
from edge_operator.kube.world import System
from edge_operator.ports import Memory, Pass, Resource
from edge_operator.reconcile import Proposal, propose

HIDDEN = "(from a Secret)"


class ManifestError(ValueError):
    """A file is not what it should be; the message says which, where and what is expected."""


@dataclass(frozen=True)
class Preview:
    """What is planned for one resource: lines to print, and whether anything would change or is in the way."""

    name: str
    lines: tuple[str, ...]
    changes: int = 0
    obstacle: bool = False


Manifests = list[tuple[Kind[Any], dict[str, Any]]]


def manifests(sources: Sequence[tuple[str, str]], namespace: str) -> Manifests:
    """Resources of our kinds in YAML texts, each with the namespace it goes to; other objects are passed over.

    `sources` are (name for messages, text).

    Raises:
        ManifestError: a text is no YAML, or a document is no object.
    """
    found = []
    for name, document in _documents(sources, namespace):
        kind = KINDS.get(str(document.get("kind")))
        if kind is None or not str(document.get("apiVersion")).startswith(f"{GROUP}/"):
            continue
        meta = document["metadata"]
        if not isinstance(meta.get("name"), str) or not meta["name"]:
            raise ManifestError(f"{name}: a {kind.name} has no metadata.name")
        if not isinstance(meta.get("annotations") or {}, dict):
            raise ManifestError(f"{name}: metadata.annotations of {kind.name} {meta['name']} should be a map")
        found.append((kind, document))
    return found


def connections(sources: Sequence[tuple[str, str]], namespace: str) -> Mapping[ConnectionKey, Resource]:
    """The connections in YAML texts, which would be there once all is applied."""
    return lookup.connections([document for _, document in _documents(sources, namespace)])


def given(sources: Sequence[tuple[str, str]], namespace: str) -> Given:
    """The values of the Secrets in YAML texts, which would be there once all is applied.

    Raises:
        ManifestError: a Secret is none.
    """
    found: dict[tuple[str, str], Mapping[str, str]] = {}
    for name, document in _documents(sources, namespace):
        if (document.get("apiVersion"), document.get("kind")) == ("v1", "Secret"):
            meta = document["metadata"]
            try:
                data = {k: base64.b64decode(v).decode() for k, v in (document.get("data") or {}).items()}
                values = {**data, **{k: str(v) for k, v in (document.get("stringData") or {}).items()}}
            except (AttributeError, TypeError, ValueError):
                raise ManifestError(f"{name}: Secret {meta.get('name')} holds no base64 of UTF-8 text") from None
            found[meta["namespace"], str(meta.get("name"))] = values
    return found


class _Loader(yaml.SafeLoader):
    """Leaves times as texts, as kubectl does."""


_TIME = "tag:yaml.org,2002:timestamp"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in known if tag != _TIME]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _problem(error: yaml.YAMLError) -> str:
    """What is wrong and in which line, without the line's text: that could be a Secret's value."""
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}" if mark is not None else ""
    return f"{getattr(error, 'problem', None) or 'it holds bytes that no text has'}{where}"


def _documents(sources: Sequence[tuple[str, str]], namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in the texts, with where it is from; a List stands for what is in it."""
    for name, text in sources:
        try:
            documents = [d for d in yaml.load_all(text, _Loader) if d is not None]
        except yaml.YAMLError as error:
            raise ManifestError(f"{name}: is not YAML: {_problem(error)}") from None
        for document in documents:
            many = isinstance(document, dict) and isinstance(document.get("items"), list)
            for item in document["items"] if many else [document]:
                if not isinstance(item, dict) or not isinstance(item.get("metadata"), dict):
                    raise ManifestError(f"{name}: holds a document that is not a Kubernetes object")
                item["metadata"]["namespace"] = str(item["metadata"].get("namespace") or namespace)
                yield name, item


class PreviewCluster(KubeCluster):
    """The cluster as it would be with the manifests in it. Reads only."""

    planned: frozenset[tuple[str, Named]] = frozenset()
    given: Given
    shown: dict[str, str]

    def find(self, namespace: str, named: Named) -> Referent | None:
        """What is known of a resource; one that the manifests make has an id that is not known yet."""
        known = super().find(namespace, named)
        if (namespace, named) in self.planned and (known is None or known.id is None):
            return Referent(f"(id of {named[0]}/{named[1]})")
        return known

    async def values(self, namespace: str, keys: Mapping[SecretKeyRef, str]) -> Mapping[SecretKeyRef, str]:
        """Secret values; remembered so that they are never printed."""
        named = {ref: self.given.get((namespace, ref.name), {}) for ref in keys}
        new = {ref: values[ref.key] for ref, values in named.items() if ref.key in values}
        found = {**new, **await super().values(namespace, {r: at for r, at in keys.items() if r not in new})}
        self.shown |= {value: HIDDEN for value in found.values() if value}
        return found


async def previews(
    api: KubeAPI, accounts: Accounts, wanted: Manifests, secrets_: Given, *, cluster_id: str, key: bytes
) -> list[Preview]:
    """What would be done for each manifest, in their order."""
    index = Index(KINDS)
    cluster = PreviewCluster(
        api,
        index,
        cluster_id=cluster_id,
        digest_key=key,
        may_write=_never,
        tell=lambda *_: None,
        wake=lambda _: None,
    )
    cluster.given, cluster.shown = secrets_, {}
    cluster.planned = frozenset((d["metadata"]["namespace"], (k.name, d["metadata"]["name"])) for k, d in wanted)
    for namespace in sorted({d["metadata"]["namespace"] for _, d in wanted}):
        for kind in KINDS.values():
            for live in (await api.list(path(kind, namespace))).items:
                index.observe(kind, live, dirty=False)
    return [await _preview(api, cluster, accounts, kind, document) for kind, document in wanted]


def _never() -> None:
    raise RuntimeError("a plan writes nothing")


async def _preview(
    api: KubeAPI, cluster: PreviewCluster, accounts: Accounts, kind: Kind[Any], document: dict[str, Any]
) -> Preview:
    meta = document["metadata"]
    name = f"{kind.name} {meta['namespace']}/{meta['name']}"
    resource = await _as_applied(api, kind, document)
    if resource["metadata"].get("deletionTimestamp"):
        return Preview(name, ("is being deleted; nothing else would be done",), obstacle=True)
    if resource["metadata"]["annotations"].get(state.PAUSED) == "true":
        return Preview(name, ("is paused by annotation; nothing would be done",), obstacle=True)
    through = state.through(resource) or references.connection(meta["namespace"], resource["spec"])
    who = (cluster.id, meta["namespace"], meta["name"], resource["metadata"]["uid"])
    identity = Identity(*who, cluster.digest_key, through=through)
    try:
        remote = await accounts.remote(through, meta["namespace"])
        line = Pass(kind, identity, Memory(), remote, cluster, System(), 0.0)
        found = await propose(line, resource)
    except (Waiting, Stalled) as ended:
        word = "would wait" if isinstance(ended, Waiting) else "would stall"
        return Preview(name, (f"{word} ({ended.reason}): {ended.message}",), obstacle=True)
    except Unsupported as ended:
        return Preview(name, (f"would stall ({Stalls.OPERATION_UNSUPPORTED}): {ended}",), obstacle=True)
    lines = tuple(_lines(kind, found, cluster.shown))
    if found.plan.drift and not found.plan.operations:
        text = f"differs at {', '.join(found.plan.drift)}; nothing is written under managementPolicy Observe"
        return Preview(name, (text,))
    return Preview(name, lines or ("nothing to do",), changes=len(lines))


async def _as_applied(api: KubeAPI, kind: Kind[Any], document: dict[str, Any]) -> Resource:
    """The live resource with the manifest's spec, or the manifest as a resource that is new."""
    meta = document["metadata"]
    try:
        live = await api.get(path(kind, meta["namespace"], meta["name"]))
    except errors.NotFound:
        # What a manifest from `kubectl get` says besides, the API server drops: a status, a uid, a claim of another.
        fresh = {"uid": f"new-{secrets.token_hex(4)}", "resourceVersion": "0", "generation": 1}
        kept = {name: meta.get(name) or {} for name in ("labels", "annotations")}
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": kind.name,
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], **kept, **fresh},
            "spec": document.get("spec") or {},
        }
    annotations = {**(live["metadata"].get("annotations") or {}), **(meta.get("annotations") or {})}
    return {**live, "spec": document.get("spec") or {}, "metadata": {**live["metadata"], "annotations": annotations}}


def _lines(kind: Kind[Any], found: Proposal, hidden: Mapping[str, str]) -> Iterator[str]:
    todo = found.plan
    for operation in todo.operations:
        yield from _operation(kind, operation, hidden)
    if found.replaces is not None:
        overlap = max((o.overlap for o in todo.operations if isinstance(o, Create)), default=timedelta())
        yield f"- delete {found.replaces}, {f'{overlap} later' if overlap else 'afterwards'}"
    if todo.drift:
        yield f"  because the service holds something else at {', '.join(todo.drift)}"
    elif todo.why and todo.operations:
        yield f"  because: {todo.why}"


def _operation(kind: Kind[Any], operation: Operation, hidden: Mapping[str, str]) -> Iterator[str]:
    match operation:
        case Create(body, path_):
            yield f"+ create at {kind.api.path.format(**path_)}"
            yield from _body(body, hidden)
        case Update(id_, body):
            yield f"~ update {id_}"
            yield from _body(body, hidden)
        case PutModule(id_, segment, body):
            yield f"~ replace module {segment} of {id_}"
            yield from _body(body, hidden)
        case DeleteModule(id_, segment):
            yield f"- remove module {segment} of {id_}"
        case Delete(id_):
            yield f"- delete {id_}"
        case Publish(secret):
            yield f"+ write Secret {secret}"
        case TakeOver(secret):
            yield f"~ take over Secret {secret}"
        case Claim() | Read() | Disown() | Release():
            return


def _body(body: Mapping[str, Any], hidden: Mapping[str, str]) -> Iterator[str]:
    for name, value in body.items():
        shown = marker.split(value)[0] if name == "metadata" else _masked(value, hidden)
        yield f"    {name}: {json.dumps(shown, ensure_ascii=False)}"


def _masked(value: Any, hidden: Mapping[str, str]) -> Any:
    match value:
        case str():
            return hidden.get(value, value)
        case dict():
            return {k: _masked(v, hidden) for k, v in value.items()}
        case list():
            return [_masked(v, hidden) for v in value]
        case _:
            return value


async def digest_key(api: KubeAPI, namespace: str) -> bytes:
    """The operator's digest key if there is one, else one of no use: what is recorded then says nothing."""
    try:
        await api.get(paths.secret(namespace, bootstrap.DIGEST_SECRET))
    except errors.KubeError:
        return secrets.token_bytes(bootstrap.DIGEST_KEY_BYTES)
    return await bootstrap.digest_key(api, namespace)


def show(found: Sequence[Preview], out: TextIO) -> None:
    """Print the plan for people."""
    for preview in found:
        out.write(f"{preview.name}\n")
        out.writelines(f"  {line}\n" for line in preview.lines)
    changing, obstacles = sum(p.changes > 0 for p in found), sum(p.obstacle for p in found)
    same = len(found) - changing - obstacles
    out.write(f"\n{changing} to change, {same} in sync, {obstacles} that cannot go on; nothing was done.\n")


def texts(files: Sequence[Path], stdin: TextIO) -> list[tuple[str, str]]:
    """Names and contents of manifest files; a folder stands for its YAML files, `-` for standard input.

    Raises:
        ManifestError: a file cannot be read.
    """
    out = []
    for file in files:
        if str(file) == "-":
            out.append(("standard input", stdin.read()))
            continue
        try:
            inside = (
                sorted(f for f in file.iterdir() if f.suffix in (".yaml", ".yml", ".json")) if file.is_dir() else [file]
            )
            out += [(str(f), f.read_text()) for f in inside]
        except (OSError, UnicodeDecodeError) as error:
            raise ManifestError(f"{file}: cannot be read ({type(error).__name__})") from None
    return out
