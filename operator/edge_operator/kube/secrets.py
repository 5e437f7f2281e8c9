"""Output Secrets and input values: the only code that sees the data of Secrets.

Each request that writes asks `may_write` just before, and carries the resourceVersion of a Secret that is still what
the decision was made on.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from edge_operator.declare import GROUP, Kind, SecretKeyRef
from edge_operator.engine import ownership, state
from edge_operator.engine.operations import KeyPair, Restart, Stalled, Waiting
from edge_operator.engine.ownership import KIND_LABEL
from edge_operator.engine.reasons import Stalls, Waits
from edge_operator.engine.state import Published
from edge_operator.kube import errors, paths
from edge_operator.kube.client import JSON, KubeAPI
from edge_operator.ports import Resource

ID_ANNOTATION = f"{GROUP}/id"
SSH_AUTH = "kubernetes.io/ssh-auth"
ATTEMPTS = 5


def _read_only() -> None:
    raise RuntimeError("these Secrets are only read")


class Secrets:
    """Reads and writes Secrets in the namespaces of resources. `may_write` raises NotLeading."""

    def __init__(self, api: KubeAPI, may_write: Callable[[], None] = _read_only) -> None:
        self._api, self._may_write = api, may_write

    async def values(self, namespace: str, keys: Mapping[SecretKeyRef, str]) -> dict[SecretKeyRef, str]:
        """The values that a spec reads; each Secret is read once.

        Raises:
            Waiting: a Secret or a key in it is absent.
            Stalled: a value is not text.
        """
        found = {name: await self.read(namespace, name) for name in sorted({k.name for k in keys})}
        out: dict[SecretKeyRef, str] = {}
        for ref, at in keys.items():
            secret = found[ref.name]
            if secret is None:
                raise Waiting(Waits.SECRET_NOT_READY, f"{at}: there is no Secret {ref.name!r} in this namespace")
            data = secret.get("data") or {}
            if ref.key not in data:
                raise Waiting(Waits.SECRET_NOT_READY, f"{at}: Secret {ref.name!r} has no key {ref.key!r}")
            out[ref] = _text(data[ref.key], f"{at}: key {ref.key!r} of Secret {ref.name!r}")
        return out

    async def read(self, namespace: str, name: str) -> JSON | None:
        """A Secret as it is now, or None."""
        try:
            return await self._api.get(paths.secret(namespace, name))
        except errors.NotFound:
            return None

    async def published(self, kind: Kind[Any], resource: Resource, name: str) -> Published | None:
        """What an output Secret holds, or None."""
        secret = await self.read(resource["metadata"]["namespace"], name)
        return None if secret is None else _published(kind, resource, secret)

    async def publish(
        self,
        kind: Kind[Any],
        resource: Resource,
        name: str,
        id_: str,
        data: Mapping[str, str],
        seen: Published | None,
    ) -> Published:
        """Create the Secret, or replace the values in ours; what it is afterwards. Somebody else's is never written.

        Raises:
            Stalled: there is one that is not ours.
            Restart: it is not what was seen any more, or others keep writing to it.
            NotLeading: this replica may not write.
        """
        namespace = resource["metadata"]["namespace"]
        for _ in range(ATTEMPTS):
            current = await self.read(namespace, name)
            if current is not None and not _ours(current, resource):
                raise Stalled(Stalls.SECRET_CONFLICT, f"Secret {name!r} exists and is not this resource's")
            if not state.undisturbed(seen, None if current is None else _published(kind, resource, current)):
                raise Restart
            try:
                if current is None:
                    whole = _secret(kind, resource, name, id_, data)
                    self._may_write()
                    return _published(kind, resource, await self._api.create(paths.secret(namespace), whole))
                if current["type"] == SSH_AUTH and _type(data) != SSH_AUTH:
                    text = f"Secret {name!r} is of the type {SSH_AUTH} and would lose its private key; delete it"
                    raise Stalled(Stalls.SECRET_CONFLICT, text)
                patch = _patch(kind, resource, name, id_, data, current)
                self._may_write()
                return _published(kind, resource, await self._api.merge_patch(paths.secret(namespace, name), patch))
            except (errors.Conflict, errors.NotFound):
                continue
        raise Restart

    async def take_over(self, kind: Kind[Any], resource: Resource, name: str, seen: Published | None) -> Published:
        """Put our owner reference in the place of one of a resource of this kind and name that is gone; what the
        Secret is then.

        Raises:
            Restart: the Secret is not as it was any more.
            NotLeading: this replica may not write.
        """
        secret = await self.read(resource["metadata"]["namespace"], name)
        if secret is None or not _forsaken(kind, secret, resource):
            raise Restart
        if not state.undisturbed(seen, _published(kind, resource, secret)):
            raise Restart
        version = secret["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version, "ownerReferences": [_reference(kind, resource)]}}
        self._may_write()
        try:
            written = await self._api.merge_patch(paths.secret(resource["metadata"]["namespace"], name), patch)
        except (errors.Conflict, errors.NotFound):
            raise Restart from None
        return _published(kind, resource, written)

    async def disown(self, resource: Resource, name: str) -> None:
        """Take the owner reference off, so that the Secret outlives the resource. None, or not ours: nothing to do.

        Raises:
            Restart: others keep writing to it.
            NotLeading: this replica may not write.
        """
        meta = resource["metadata"]
        for _ in range(ATTEMPTS):
            secret = await self.read(meta["namespace"], name)
            if secret is None or not _ours(secret, resource):
                return
            others = [o for o in secret["metadata"].get("ownerReferences") or () if o.get("uid") != meta["uid"]]
            version = secret["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version, "ownerReferences": others or None}}
            self._may_write()
            try:
                await self._api.merge_patch(paths.secret(meta["namespace"], name), patch)
            except errors.Conflict:
                continue
            except errors.NotFound:
                return
            return
        raise Restart


def _published(kind: Kind[Any], resource: Resource, secret: JSON) -> Published:
    data = secret.get("data") or {}
    return Published(
        ours=_ours(secret, resource),
        id=(secret["metadata"].get("annotations") or {}).get(ID_ANNOTATION),
        keys=frozenset(k for k, v in data.items() if v),
        key_pair=_key_pair(kind, data),
        token=_token(kind, data),
        tokens=_tokens(kind, data),
        forsaken=_forsaken(kind, secret, resource),
    )


def _ours(secret: JSON, resource: Resource) -> bool:
    owners = secret["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == resource["metadata"]["uid"] for owner in owners)


def _forsaken(kind: Kind[Any], secret: JSON, resource: Resource) -> bool:
    meta = resource["metadata"]
    return ownership.forsaken(secret["metadata"], kind.name, meta["name"], meta["uid"])


def _reference(kind: Kind[Any], resource: Resource) -> JSON:
    return {
        "apiVersion": resource["apiVersion"],
        "kind": kind.name,
        "name": resource["metadata"]["name"],
        "uid": resource["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _text(encoded: str, what: str) -> str:
    try:
        return base64.b64decode(encoded).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Stalled(Stalls.INVALID_SPEC, f"{what} should be UTF-8 text") from None


def _key_pair(kind: Kind[Any], data: Mapping[str, str]) -> KeyPair | None:
    """The key pair that the Secret keeps, where the kind has one."""
    names = {o.source: o.key for o in kind.outputs}
    private, public = data.get(names.get("private_key", "")), data.get(names.get("public_key", ""))
    if not private or not public:
        return None
    return KeyPair(_text(public, "the public key").strip(), _text(private, "the private key"))


def _token(kind: Kind[Any], data: Mapping[str, str]) -> str | None:
    """The token that the Secret keeps, where the kind has one."""
    key = next((o.key for o in kind.outputs if o.source == "token"), "")
    return _text(data[key], "the token") if data.get(key) else None


def _tokens(kind: Kind[Any], data: Mapping[str, str]) -> dict[str, str]:
    """The tokens that the Secret keeps, by the ids beside them."""
    keys = {o.source: o.key for o in kind.outputs}
    pairs = [(keys.get(f"{when}id", ""), keys.get(f"{when}token", "")) for when in ("", "previous.")]
    return {
        _text(data[id_], "the id"): _text(data[token], "the token")
        for id_, token in pairs
        if data.get(id_) and data.get(token)
    }


def _encoded(data: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}


def _metadata(kind: Kind[Any], resource: Resource, id_: str) -> tuple[dict[str, str], dict[str, str]]:
    template = (resource.get("spec") or {}).get("secretTemplate") or {}
    own = {KIND_LABEL: kind.name, "app.kubernetes.io/managed-by": "edge-operator"}
    return {**(template.get("labels") or {}), **own}, {**(template.get("annotations") or {}), ID_ANNOTATION: id_}


def _secret(kind: Kind[Any], resource: Resource, name: str, id_: str, data: Mapping[str, str]) -> JSON:
    labels, annotations = _metadata(kind, resource, id_)
    owners = [_reference(kind, resource)]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": _type(data),
        "metadata": {"name": name, "labels": labels, "annotations": annotations, "ownerReferences": owners},
        "data": _encoded(data),
    }


def _type(data: Mapping[str, str]) -> str:
    """The Secret's type, which cannot change later. Source: Kubernetes, types of Secret."""
    return SSH_AUTH if "ssh-privatekey" in data else "Opaque"


def _patch(kind: Kind[Any], resource: Resource, name: str, id_: str, data: Mapping[str, str], current: JSON) -> JSON:
    """A merge patch; outputs that there are no more go."""
    whole = _secret(kind, resource, name, id_, data)
    gone = {o.key: None for o in kind.outputs if o.key in (current.get("data") or {}) and o.key not in data}
    return {
        "metadata": {
            "resourceVersion": current["metadata"]["resourceVersion"],
            "labels": whole["metadata"]["labels"],
            "annotations": whole["metadata"]["annotations"],
        },
        "data": {**whole["data"], **gone},
    }
