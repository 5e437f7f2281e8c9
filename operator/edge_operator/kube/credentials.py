"""Who we are to the API server, and where it is: a kubeconfig or the pod's service account, kept up to date."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import math
import os
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import kopf
from kubernetes.aio import client, config
from kubernetes.aio.config import incluster_config, kube_config

from edge_operator.kube import errors

REFRESH_SECONDS = 60.0
"""How often a token that may be rotated is looked at again. The kubelet renews at 80 % of at least ten minutes."""
RELOAD_SECONDS = 5.0
"""How soon after a reload a refused token may cause the next one."""


class Credentials:
    """The address of the API server and a token or certificate for it, from the place that was found at the start.

    A token file, an exec plugin and the service account are looked at again every minute, and everything is read anew
    when the API server refuses what we have. Nothing here is ever shown: `repr` names the server only.
    """

    def __init__(self, kubeconfig: str | None, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.kubeconfig = kubeconfig
        """The kubeconfig in use, or None for the pod's service account."""
        self.configuration: Any = None
        self._monotonic = monotonic
        self._loader: Any = None
        self._token: str | None = None
        self._due = 0.0
        self._reloaded = -math.inf
        self._reading = asyncio.Lock()

    @classmethod
    async def load(
        cls,
        kubeconfig: Path | None = None,
        *,
        environ: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Credentials:
        """Credentials from a named kubeconfig, else from the pod, else from `KUBECONFIG` or `~/.kube/config`.

        Raises:
            NotConfigured: there is none of them, or the one that counts is unusable.
        """
        found = cls(_place(kubeconfig, environ), monotonic=monotonic)
        found.configuration = await found._read()
        found._due = monotonic() + REFRESH_SECONDS
        return found

    def __repr__(self) -> str:
        return f"Credentials({self.server!r})"

    @property
    def place(self) -> str:
        """Where they are from, for messages."""
        return self.kubeconfig or "the pod's service account"

    @property
    def server(self) -> str:
        """The address of the API server, for example `https://10.0.0.1:443`."""
        return str(self.configuration.host).rstrip("/") if self.configuration else ""

    async def authorization(self) -> str | None:
        """The value of the Authorization header; None where a client certificate speaks for us."""
        if self._monotonic() >= self._due:
            self._due = self._monotonic() + REFRESH_SECONDS
            await self._refresh()
        return self._token

    async def refused(self, token: str | None) -> bool:
        """Read everything anew because the API server refused a token; whether there is another one now."""
        async with self._reading:
            if token == self._token and self._monotonic() - self._reloaded >= RELOAD_SECONDS:
                self._reloaded = self._monotonic()
                with contextlib.suppress(errors.NotConfigured):
                    await self._read()
            return token != self._token

    async def kopf_connection(self) -> kopf.ConnectionInfo:
        """The same credentials in the form that kopf's login handler returns."""
        settings = self.configuration
        scheme, _, token = (await self.authorization() or "").partition(" ")
        rotates = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=REFRESH_SECONDS)
        return kopf.ConnectionInfo(
            server=self.server,
            ca_path=settings.ssl_ca_cert,
            insecure=not settings.verify_ssl,
            scheme=scheme or None,
            token=token or None,
            certificate_path=settings.cert_file,
            private_key_path=settings.key_file,
            proxy_url=settings.proxy,
            expiration=rotates if token and self._rotates else None,
        )

    @property
    def _rotates(self) -> bool:
        """Whether the token comes from a place that renews it."""
        if self._loader is None:
            return True
        user = self._loader._user or ()  # noqa: SLF001  # the library's own refresh_token() looks there as well
        return any(place in user for place in ("tokenFile", "exec", "auth-provider"))

    async def _read(self) -> Any:
        """A configuration from the files as they are now; remembers the token.

        Raises:
            NotConfigured: a file is absent or unusable.
        """
        settings = client.Configuration()
        try:
            if self.kubeconfig is None:
                config.load_incluster_config(settings)  # type: ignore[no-untyped-call]  # the library has no types here
                settings.refresh_api_key_hook = None
            else:
                self._loader = await config.load_kube_config(  # type: ignore[no-untyped-call]  # as above
                    self.kubeconfig, client_configuration=settings, persist_config=False
                )
            _check(settings.host)
        except Exception as error:
            raise errors.NotConfigured(f"{self.place}: {_readable(error)}") from error
        self._remember(settings)
        # Authorities of clusters often lack an extension that Python 3.13 insists on; chain and name are checked.
        settings.disable_strict_ssl_verification = True
        settings.proxy = settings.proxy or _proxy(settings.host)
        return settings

    async def _refresh(self) -> None:
        """Look for a newer token without reading a whole kubeconfig; an old token stays where there is no new one."""
        if not self._rotates:
            return
        try:
            if self._loader is None:
                await self._read()
            else:
                settings = client.Configuration()
                await self._loader.load_and_set(settings)
                self._remember(settings)
        except Exception:  # noqa: BLE001  # whatever an exec plugin or a file does, the old token may still be good
            return

    def _remember(self, settings: Any) -> None:
        scheme, _, token = str(settings.api_key.get("BearerToken") or "").partition(" ")
        if token.strip():
            self._token = f"{'Bearer' if scheme.lower() == 'bearer' else scheme} {token.strip()}"


def _place(kubeconfig: Path | None, environ: Mapping[str, str]) -> str | None:
    """The kubeconfig to use, or None for the service account.

    Raises:
        NotConfigured: there is nothing to use; the message says what was looked for.
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise errors.NotConfigured(f"{kubeconfig}: there is no such file; --kubeconfig should name a kubeconfig")
        return str(kubeconfig)
    if environ.get(incluster_config.SERVICE_HOST_ENV_NAME) and Path(incluster_config.SERVICE_TOKEN_FILENAME).exists():
        return None
    named = environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if not any(Path(part).expanduser().is_file() for part in named.split(kube_config.ENV_KUBECONFIG_PATH_SEPARATOR)):
        raise errors.NotConfigured(
            f"no service account of a pod, and no kubeconfig at {named}; name one by --kubeconfig or KUBECONFIG"
        )
    return named


def _check(server: str) -> None:
    """Look whether an address can be one.

    Raises:
        ConfigException: it cannot.
    """
    try:
        parts = urlsplit(server)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise config.ConfigException("the server should be a URL, for example https://10.0.0.1:6443")


def _proxy(server: str) -> str | None:
    """The proxy that the environment names for a server, looked up once instead of with each request."""
    parts = urlsplit(server)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _readable(error: Exception) -> str:
    """What was wrong with a file, without quoting what stands in it."""
    if isinstance(error, config.ConfigException | OSError | aiohttp.ClientError):
        return str(error)[: errors.FOREIGN_TEXT]
    return f"not a usable kubeconfig ({type(error).__name__})"
