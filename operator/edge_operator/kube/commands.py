"""Commands for people beside the operator: `plan` and `import` write nothing, `drain` deletes resources."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import yaml

from edge_operator.api import profiles
from edge_operator.api.errors import Misuse
from edge_operator.door import Door
from edge_operator.engine import brownfield
from edge_operator.engine.operations import Missing, Shut, Stalled, Unsupported, Waiting
from edge_operator.engine.reasons import Waits
from edge_operator.kinds import KINDS
from edge_operator.kube import bootstrap, errors, logs, preview
from edge_operator.kube import drain as draining
from edge_operator.kube.account import Account
from edge_operator.kube.client import KubeAPI
from edge_operator.kube.flags import Flags, KeyUnreadable
from edge_operator.kube.lookup import Accounts
from edge_operator.settings import Settings

OK, FAILED = 0, 1


def main(command: Coroutine[Any, Any, int]) -> int:
    """The exit code of a command; what goes wrong is one line on standard error."""
    logs.configure("warning", "plain")
    try:
        return asyncio.run(command)
    except (errors.KubeError, profiles.ProfileError, KeyUnreadable, Misuse, preview.ManifestError) as why:
        sys.stderr.write(f"edge-operator: {why}\n")
        return FAILED


async def plan(settings: Settings, files: Sequence[Path], namespace: str) -> int:
    """Print what would be done for manifests; FAILED if one of them cannot go on."""
    sources = preview.texts(files, sys.stdin)
    wanted, given = preview.manifests(sources, namespace), preview.given(sources, namespace)
    flags = Flags.of(settings)
    async with await KubeAPI.connect(settings.kubeconfig) as api:
        accounts = Accounts(
            api,
            flags.terms if flags else None,
            connections=preview.connections(sources, namespace),
            given=given,
            operator_namespace=settings.operator_namespace,
            call_seconds=settings.call_seconds,
        )
        try:
            found = await preview.previews(
                api,
                accounts,
                wanted,
                given,
                cluster_id=await bootstrap.cluster_identity(api, settings.cluster_id),
                key=await preview.digest_key(api, settings.operator_namespace),
            )
        finally:
            await accounts.close()
    preview.show(found, sys.stdout)
    return FAILED if any(p.obstacle for p in found) else OK


async def import_(settings: Settings, kinds: Sequence[str], ids: Sequence[str], namespace: str) -> int:
    """Print manifests for what the account holds; FAILED if an id was not found or a list failed."""
    account, missing = _account(settings), set(ids)
    try:
        for kind in KINDS.values():
            if kinds and kind.name not in kinds:
                continue
            listing = await account.remote.listing(kind.api, 0.0)
            for answer in listing.objects.values():
                if ids and answer["id"] not in ids:
                    continue
                missing.discard(answer["id"])
                _print(brownfield.manifest(kind, answer, namespace), answer["id"])
    except (Waiting, Stalled, Unsupported, Missing) as why:
        sys.stderr.write(f"edge-operator: {why}\n")
        return FAILED
    finally:
        await account.close()
    for id_ in sorted(missing):
        sys.stderr.write(f"edge-operator: {id_}: not in the account, or of a kind that is not imported\n")
    return FAILED if missing else OK


async def drain(kubeconfig: Path | None, namespaces: Sequence[str], *, sure: bool, timeout_seconds: float) -> int:
    """Delete every resource and wait until all are gone; FAILED if some are left."""
    async with await KubeAPI.connect(kubeconfig) as api:
        return await draining.drain(api, namespaces, sys.stdout, sure=sure, timeout_seconds=timeout_seconds)


def _print(manifest: brownfield.Manifest | None, id_: str) -> None:
    if manifest is None:
        sys.stdout.write(f"# {id_} has an owner marker already and is left out\n")
        return
    if manifest.obstacle:
        sys.stdout.write(f"# {id_} is left out, because no resource can say what it holds: {manifest.obstacle}\n")
        return
    sys.stdout.write("---\n")
    for need in manifest.needs:
        sys.stdout.write(f"# needs {need}\n")
    yaml.dump(manifest.document, sys.stdout, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


class _Dumper(yaml.SafeDumper):
    """Quotes every text that another reader of YAML, such as kubectl's, might take for a number or a boolean."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = re.fullmatch(r"[A-Za-z/][A-Za-z0-9_./-]+", text) is not None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if plain else '"')


_Dumper.add_representer(str, _text)


def _account(settings: Settings) -> Account:
    """The account of the flags, for reading: whatever would write is refused before it is sent.

    Raises:
        NotConfigured: the flags name none.
    """
    found = Flags.of(settings)
    if found is None:
        raise errors.NotConfigured("--api-url and --api-key-file are needed")
    door = Door(time.monotonic, may_act=lambda _: False, call_seconds=settings.call_seconds)
    account = Account(door, Shut(Waits.CONNECTION_NOT_READY, "not opened yet"), lambda _: None)
    account.use(found.terms)
    return account
