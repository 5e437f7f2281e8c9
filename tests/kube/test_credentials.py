"""Kubeconfigs of every sort, the pod's service account, and tokens that are renewed."""

import asyncio
import contextlib
import stat
from pathlib import Path
from typing import Any

import kopf
import pytest
from aiohttp import web
from kubernetes.aio.config import incluster_config

from edge_operator.kube import errors
from edge_operator.kube.client import KubeAPI
from edge_operator.kube.credentials import REFRESH_SECONDS, RELOAD_SECONDS, Credentials

from .apiserver import kubeconfig, pair, replies, serving, status, tls

PATH = "/api/v1/namespaces/shop/secrets"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def token_file(folder: Path, token: str) -> Path:
    path = folder / "token"
    path.write_text(f"{token}\n")
    return path


async def asked_with(credentials: Credentials) -> str | None:
    return await credentials.authorization()


async def test_a_token_and_the_authority_of_the_server(tmp_path: Path) -> None:
    async with serving(replies((200, {"kind": "X"})), tls(tmp_path)) as server:
        user = {"token": "t-1"}
        path = kubeconfig(tmp_path, server.url, user, **{"certificate-authority-data": pair("ca").data})
        async with await KubeAPI.connect(path) as api:
            assert {"kind": "X"} == await api.get(PATH)
    assert "Bearer t-1" == server.requests[0][2]["Authorization"]


async def test_a_client_certificate_from_data_and_from_files(tmp_path: Path) -> None:
    me = pair("somebody", "ca")
    (tmp_path / "me.crt").write_bytes(me.certificate)
    (tmp_path / "me.key").write_bytes(me.key)
    (tmp_path / "ca.crt").write_bytes(pair("ca").certificate)
    users = [
        {"client-certificate-data": me.data, "client-key-data": me.key_data},
        {"client-certificate": "me.crt", "client-key": "me.key"},
    ]
    async with serving(replies((200, {"kind": "X"})), tls(tmp_path, clients="ca")) as server:
        for user in users:
            path = kubeconfig(tmp_path, server.url, user, **{"certificate-authority": "ca.crt"})
            async with await KubeAPI.connect(path) as api:
                assert {"kind": "X"} == await api.get(PATH)
    assert "Authorization" not in server.requests[0][2]


async def test_a_server_of_another_authority_is_not_talked_to(tmp_path: Path) -> None:
    async with serving(replies((200, {})), tls(tmp_path)) as server:
        other = {"certificate-authority-data": pair("other").data, "insecure-skip-tls-verify": False}
        async with await KubeAPI.connect(kubeconfig(tmp_path, server.url, {"token": "t-1"}, **other)) as api:
            with pytest.raises(errors.Unreachable) as raised:
                await api.get(PATH)
    assert not raised.value.sent
    assert [] == server.requests


async def test_verification_is_left_out_only_where_the_kubeconfig_says_so(tmp_path: Path) -> None:
    async with serving(replies((200, {"kind": "X"})), tls(tmp_path)) as server:
        path = kubeconfig(tmp_path, server.url, {"token": "t-1"}, **{"insecure-skip-tls-verify": True})
        async with await KubeAPI.connect(path) as api:
            assert {"kind": "X"} == await api.get(PATH)


async def test_a_proxy_of_the_environment_is_used_unless_the_server_is_excepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(replies((200, {"kind": "X"}))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "spared.invalid")
        for host, requests in (("far.invalid", 1), ("spared.invalid", 1)):
            async with await KubeAPI.connect(kubeconfig(tmp_path, f"http://{host}", {"token": "t"})) as api:
                with contextlib.suppress(errors.Unreachable):
                    await api.get(PATH)
            assert requests == len(proxy.requests)


async def test_a_netrc_file_is_none_of_our_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password canary\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with (
        serving(replies((200, {}))) as server,
        await KubeAPI.connect(kubeconfig(tmp_path, server.url, {})) as api,
    ):
        await api.get(PATH)
    assert "Authorization" not in server.requests[0][2]


UNUSABLE: list[tuple[Any, str]] = [
    ("", "empty"),
    ("nonsense", "no mapping"),
    ("a: [", "no YAML"),
    ("kind: Config", "no contexts"),
    ({"server": "http://127.0.0.1:99999"}, "no such port"),
    ({"server": "ftp://example.org"}, "no such scheme"),
    ({"server": ""}, "no server"),
    ({"server": "https://127.0.0.1:1", "certificate-authority": "absent.crt"}, "an absent file"),
    ({"server": "https://127.0.0.1:1", "certificate-authority-data": "bm9uc2Vuc2U="}, "no certificate"),
    ({"server": "https://127.0.0.1:1", "certificate-authority-data": "%%%"}, "no base64"),
]


@pytest.mark.parametrize("content", [content for content, _ in UNUSABLE], ids=[reason for _, reason in UNUSABLE])
async def test_an_unusable_kubeconfig_is_named_and_not_quoted(tmp_path: Path, content: Any) -> None:
    if isinstance(content, str):
        path = tmp_path / "kubeconfig"
        path.write_text(f"{content}\n# canary-81")
    else:
        path = kubeconfig(tmp_path, user={"token": "canary-81"}, **content)
    with pytest.raises(errors.NotConfigured) as raised:
        await KubeAPI.connect(path)
    assert str(path) in str(raised.value)
    assert "canary" not in str(raised.value)


async def test_a_kubeconfig_without_a_user_is_an_anonymous_one_or_refused(tmp_path: Path) -> None:
    """The official loader has no answer for a TLS server without a user; what it says is ours to word."""
    async with await KubeAPI.connect(kubeconfig(tmp_path, "http://127.0.0.1:1", None)) as api:
        assert await api.credentials.authorization() is None
    with pytest.raises(errors.NotConfigured):
        await KubeAPI.connect(kubeconfig(tmp_path, "https://127.0.0.1:1", None))


async def test_an_absent_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.NotConfigured, match="there is no such file"):
        await KubeAPI.connect(tmp_path / "absent")


async def test_without_a_name_the_pod_goes_first_then_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig(tmp_path, "http://10.1.1.1:80", {"token": "from-file"})
    environ = {"KUBECONFIG": f"{tmp_path}/absent:{path}"}
    assert "Bearer from-file" == await asked_with(await Credentials.load(environ=environ))
    (tmp_path / "ca.crt").write_bytes(pair("ca").certificate)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token_file(tmp_path, "from-pod")))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    for name, value in pod.items():
        monkeypatch.setenv(name, value)
    found = await Credentials.load(environ={**environ, **pod})
    assert ("https://10.0.0.1:443", "Bearer from-pod") == (found.server, await asked_with(found))
    named = await Credentials.load(path, environ=pod)
    assert "Bearer from-file" == await asked_with(named)


async def test_without_anything_it_is_said_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(errors.NotConfigured, match="--kubeconfig or KUBECONFIG"):
        await Credentials.load(environ={"KUBECONFIG": str(tmp_path / "absent")})


@pytest.mark.fault("a Kubernetes token that is renewed before it expires")
async def test_a_renewed_token_of_the_pod_is_used_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.crt").write_bytes(pair("ca").certificate)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token_file(tmp_path, "old")))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    clock = Clock()
    credentials = await Credentials.load(monotonic=clock)
    token_file(tmp_path, "new")
    assert "Bearer old" == await asked_with(credentials)
    clock.now += REFRESH_SECONDS + 1
    assert "Bearer new" == await asked_with(credentials)
    (tmp_path / "token").unlink()
    clock.now += REFRESH_SECONDS + 1
    assert "Bearer new" == await asked_with(credentials)


async def test_a_renewed_token_file_of_a_kubeconfig_is_used_within_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    token_file(tmp_path, "old")
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", {"tokenFile": "token"})
    credentials = await Credentials.load(path, monotonic=clock)
    assert "Bearer old" == await asked_with(credentials)
    token_file(tmp_path, "new")
    clock.now += REFRESH_SECONDS + 1
    assert "Bearer new" == await asked_with(credentials)


def plugin(folder: Path, token: str) -> dict[str, Any]:
    """A user of a kubeconfig whose tokens come from a program, which notes each call in a file."""
    program = folder / "plugin"
    program.write_text(
        f"#!/bin/sh\necho x >> {folder}/calls\n"
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        f' "status": {{"token": "{token}", "expirationTimestamp": "2199-01-01T00:00:00Z"}}}}\'\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}}


async def test_the_token_of_a_plugin_is_kept_until_it_expires(tmp_path: Path) -> None:
    clock = Clock()
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", plugin(tmp_path, "from-plugin"))
    credentials = await Credentials.load(path, monotonic=clock)
    for _ in range(3):
        assert "Bearer from-plugin" == await asked_with(credentials)
        clock.now += REFRESH_SECONDS + 1
    assert "x\n" == (tmp_path / "calls").read_text()


@pytest.mark.fault("a Kubernetes token that has expired")
async def test_a_refused_token_is_read_again_and_the_request_is_made_once_more(tmp_path: Path) -> None:
    async def only_new(request: web.Request) -> web.StreamResponse:
        fine = request.headers["Authorization"] == "Bearer new"
        return web.json_response({"kind": "X"}, status=200 if fine else 401)

    async with serving(only_new) as server:
        path = kubeconfig(tmp_path, server.url, {"token": "old"})
        async with await KubeAPI.connect(path) as api:
            kubeconfig(tmp_path, server.url, {"token": "new"})
            assert {"kind": "X"} == await api.create(PATH, {"a": 1})
            assert {"kind": "X"} == await api.create(PATH, {"a": 1})
    assert ["old", "new", "new"] == [r[2]["Authorization"].removeprefix("Bearer ") for r in server.requests]


async def test_a_token_that_stays_refused_is_not_read_again_and_again(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(replies(status(401, "Unauthorized"))) as server:
        credentials = await Credentials.load(kubeconfig(tmp_path, server.url, {"token": "t"}), monotonic=clock)
        async with KubeAPI(credentials) as api:
            for _ in range(3):
                with pytest.raises(errors.Unauthorized):
                    await api.get(PATH)
            kubeconfig(tmp_path, server.url, {"token": "late"})
            clock.now += RELOAD_SECONDS - 1
            with pytest.raises(errors.Unauthorized):
                await api.get(PATH)
            assert ["Bearer t"] * 4 == [headers["Authorization"] for _, _, headers, _ in server.requests]
            clock.now += RELOAD_SECONDS
            with pytest.raises(errors.Unauthorized):
                await api.get(PATH)
    assert "Bearer late" == server.requests[-1][2]["Authorization"]


async def test_a_refused_token_whose_file_is_gone_is_a_refused_token(tmp_path: Path) -> None:
    async with serving(replies(status(401, "Unauthorized"))) as server:
        path = kubeconfig(tmp_path, server.url, {"token": "t"})
        async with await KubeAPI.connect(path) as api:
            path.unlink()
            with pytest.raises(errors.Unauthorized):
                await api.get(PATH)


async def test_many_refused_requests_ask_the_plugin_once_and_all_succeed(tmp_path: Path) -> None:
    async def only_new(request: web.Request) -> web.StreamResponse:
        fine = request.headers["Authorization"] == "Bearer new"
        return web.json_response({}, status=200 if fine else 401)

    async with serving(only_new) as server:
        path = kubeconfig(tmp_path, server.url, plugin(tmp_path, "old"))
        async with await KubeAPI.connect(path) as api:
            plugin(tmp_path, "new")
            await asyncio.gather(*(api.get(PATH) for _ in range(10)))
    assert "x\nx\n" == (tmp_path / "calls").read_text()


async def test_kopf_gets_the_same_credentials(tmp_path: Path) -> None:
    me = pair("somebody", "ca")
    user = {"token": "t-1", "client-certificate-data": me.data, "client-key-data": me.key_data}
    path = kubeconfig(tmp_path, "https://127.0.0.1:1", user, **{"certificate-authority-data": pair("ca").data})
    found = await (await Credentials.load(path)).kopf_connection()
    assert isinstance(found, kopf.ConnectionInfo)
    assert ("https://127.0.0.1:1", "Bearer", "t-1", None) == (found.server, found.scheme, found.token, found.expiration)
    assert not found.insecure
    assert found.as_ssl_context() is not None
    path = kubeconfig(tmp_path, "https://127.0.0.1:1", user, **{"insecure-skip-tls-verify": True})
    assert (await (await Credentials.load(path)).kopf_connection()).insecure


async def test_kopf_asks_again_for_a_token_that_is_renewed(tmp_path: Path) -> None:
    token_file(tmp_path, "t-2")
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", {"tokenFile": "token"})
    assert (await (await Credentials.load(path)).kopf_connection()).expiration is not None
