"""The client against the reference API in the same process, three items to a page: both read the document alike."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from edge_operator.api import catalog, errors, retry
from edge_operator.api.client import Client
from edge_operator.api.wire import Collection
from edge_operator.server.app import App, create_app
from edge_operator.server.faults import Fault
from edge_operator.server.settings import ServerSettings

from .doubles import BASE, Rest

ADMIN = "admin-canary-9dK2"
PAGE = 3
MANY = 2 * PAGE + 1


@pytest.fixture(params=["neutral", "ngrok"])
def app(request: pytest.FixtureRequest) -> Iterator[App]:
    found = create_app(ServerSettings(seed_api_key=ADMIN, page_size=PAGE, profile=request.param, control=True))
    yield found
    found.close()


@pytest.fixture
async def client(app: App) -> AsyncIterator[Client]:
    async with client_of(app) as found:
        yield found


def client_of(app: App, **options: Any) -> Client:
    options = {"profile": app.profile, "retry": retry.NEVER, **options}
    return Client(BASE, ADMIN, transport=httpx.ASGITransport(app=app), **options)


def _pair() -> dict[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "edge.example.com")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        "certificate_pem": certificate.public_bytes(serialization.Encoding.PEM).decode(),
        "private_key_pem": pem.decode(),
    }


def _ssh_key() -> str:
    public = ed25519.Ed25519PrivateKey.generate().public_key()
    return public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


async def _body(client: Client, collection: Collection[Any], number: int) -> dict[str, Any]:
    """A body that the service takes, different for each number where it has to be."""
    match collection.name:
        case "agent_ingresses":
            return {"domain": f"agents{number}.example.com"}
        case "ssh_user_certificates" | "ssh_host_certificates":
            authority = await client.ssh_certificate_authorities.create({})
            return {
                "ssh_certificate_authority_id": authority.id,
                "public_key": _ssh_key(),
                "principals": [f"host{number}"],
            }
        case "tls_certificates":
            return _pair()
        case "weighted_backends":
            return {"backends": {f"bkdhr_{number}": 100}}
        case "failover_backends":
            return {"backends": [f"bkdhr_{number}", "bkdtg_1"]}
        case "tcp_edges":
            return {"hostports": [f"{number}.tcp.example.com:10000"], "backend": {"backend_id": "bkdtg_1"}}
        case "tls_edges" | "https_edges":
            return {"hostports": [f"{number}.{collection.name.replace('_', '-')}.example.com:443"]}
        case "https_routes":
            return {"match_type": "path_prefix", "match": f"/{number}"}
        case "event_destinations":
            creds = {"cloud_access_key_id": "AK", "cloud_secret_access_key": "SK"}
            auth = {"creds": creds}
            return {"format": "json", "target": {"batch_stream": {"auth": auth, "delivery_stream_arn": "arn:aws:x"}}}
    return {}


STORED = [collection for collection in catalog.COLLECTIONS.values() if "create" in collection.verbs]


@pytest.mark.parametrize("collection", STORED, ids=lambda collection: collection.name)
async def test_resources_are_made_listed_over_pages_changed_and_deleted(
    client: Client, collection: Collection[Any]
) -> None:
    ids: dict[str, Any] = {}
    if "{edge_id}" in collection.path:
        ids["edge_id"] = (await client.https_edges.create({"hostports": ["routes.example.com:443"]})).id
    of = client.of(collection)
    made = []
    for number in range(MANY):
        body = {**await _body(client, collection, number), "description": f"number {number}", "metadata": "m"}
        made.append(await of.create(body, **ids))

    assert all(item.id.startswith(collection.prefix) for item in made)
    got = await of.get(made[0].id, **ids)
    assert (got.id, got.description, got.metadata) == (made[0].id, "number 0", "m")
    if "list" in collection.verbs:
        listed = [item.id async for item in of.list()]
        assert listed[:MANY] == [item.id for item in reversed(made)]
        pages = [[item["id"] for item in page] async for page in of.raw.pages(limit=2)]
        assert [item for page in pages for item in page] == listed
        assert max(map(len, pages)) == 2
    changed = await of.update(made[0].id, {"description": "changed"}, **ids)
    assert (changed.id, changed.description, changed.metadata) == (made[0].id, "changed", "m")
    await of.delete(made[0].id, **ids)
    with pytest.raises(errors.NotFound):
        await of.get(made[0].id, **ids)
    with pytest.raises(errors.NotFound):
        await of.delete(made[0].id, **ids)


MODULES: dict[str, dict[str, Any]] = {
    "backend": {"backend_id": "bkdtg_1"},
    "ip_restriction": {"ip_policy_ids": ["ipp_1"]},
    "mutual_tls": {"certificate_authority_ids": ["ca_1"]},
    "tls_termination": {"terminate_at": "edge", "min_version": "1.3"},
    "circuit_breaker": {"tripped_duration": 10, "error_threshold_percentage": 0.5},
    "request_headers": {"add": {"x-a": "b"}, "remove": ["x-c"]},
    "response_headers": {"add": {"x-a": "b"}},
    "compression": {},
    "webhook_verification": {"provider": "github", "secret": "s3cret-canary"},
    "oauth": {"provider": {"code_host_a": {"teams": ["org/team"]}}},
    "oidc": {"issuer": "https://id.example.com", "client_id": "c", "client_secret": "s3cret-canary"},
    "saml": {"idp_metadata": "<EntityDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata' entityID='i'/>"},
    "websocket_tcp_converter": {},
}


@pytest.mark.parametrize(
    ("collection", "module"),
    [pytest.param(c, name, id=f"{c.name}-{name}") for c in catalog.COLLECTIONS.values() for name in c.modules],
)
async def test_modules_are_replaced_read_and_removed(client: Client, collection: Collection[Any], module: str) -> None:
    ids: dict[str, Any] = {}
    if "{edge_id}" in collection.path:
        ids["edge_id"] = (await client.https_edges.create({"hostports": ["routes.example.com:443"]})).id
    of = client.of(collection)
    item = await of.create(await _body(client, collection, 1), **ids)

    put = await of.put_module(item.id, module, {"enabled": True, **MODULES[module]}, **ids)

    assert isinstance(put, collection.modules[module].read)
    assert await of.get_module(item.id, module, **ids) == put
    raw = await of.raw.get_module(item.id, module, **ids)
    assert type(put).model_validate(raw) == put
    if module == "oauth":
        assert raw["provider"]["code_host_a"]["teams"] == ["org/team"]
        assert len(raw["provider"]) == 8
    await of.delete_module(item.id, module, **ids)
    with pytest.raises(errors.NotFound):
        await of.get_module(item.id, module, **ids)


async def test_event_targets_come_back_in_neutral_names(client: Client) -> None:
    body = {"target": {"monitoring": {"api_key": "k", "tags": "a:b", "service": "s", "site": "eu"}}}

    made = await client.event_destinations.create(body)

    assert made.target.monitoring is not None
    assert (made.target.monitoring.tags, made.target.monitoring.site) == ("a:b", "eu")
    assert made.target.batch_stream is None


async def test_sessions_are_read_and_commanded(client: Client, app: App) -> None:
    await client.request("POST", "/_control/agents", {})
    [session] = [session async for session in client.tunnel_sessions.list()]
    assert session.transport in {"service/v2", "service/2", "ssh"}

    await client.tunnel_sessions.command(session.id, "stop")

    with pytest.raises(errors.NotFound):
        await client.tunnel_sessions.get(session.id)


async def test_a_key_that_the_service_made_works_until_it_is_revoked(client: Client, app: App) -> None:
    made = await client.api_keys.create({"description": "second"})
    assert made.token is not None
    assert (await client.api_keys.get(made.id)).token is None
    async with Client(BASE, made.token, transport=httpx.ASGITransport(app=app), profile=app.profile) as second:
        assert made.id in {key.id async for key in second.api_keys.list()}
        await client.api_keys.delete(made.id)
        with pytest.raises(errors.AuthenticationFailed):
            await second.api_keys.get(made.id)


async def test_refusals_are_the_services_words(client: Client) -> None:
    with pytest.raises(errors.InvalidRequest, match="description") as caught:
        await client.api_keys.create({"description": "é" * 128})

    assert caught.value.created == "no"
    assert caught.value.code is not None
    assert caught.value.operation_id is not None
    assert caught.value.operation_id.startswith("op_")


async def test_a_conflict_names_who_has_it(client: Client) -> None:
    first = await client.tls_edges.create({"hostports": ["taken.example.com:443"]})
    with pytest.raises(errors.Conflict, match=first.id) as caught:
        await client.tls_edges.create({"hostports": ["taken.example.com:443"]})

    assert caught.value.created == "maybe"


LOST = {
    "cut before it was done": (Fault(kind="cut", method="POST", count=1), 0),
    "cut after it was done": (Fault(kind="cut", when="after", method="POST", count=1), 1),
    "a fault before it was done": (Fault(kind="status", status=503, method="POST", count=1), 0),
    "a fault after it was done": (Fault(kind="status", status=502, when="after", method="POST", count=1), 1),
    "an answer in pieces": (Fault(kind="garbage", method="POST", count=1), 1),
    "an answer without an id": (Fault(kind="null", method="POST", count=1), 1),
}


@pytest.mark.parametrize(("fault", "made"), LOST.values(), ids=LOST.keys())
async def test_a_create_is_made_once_at_most_whatever_gets_lost(app: App, fault: Fault, made: int) -> None:
    """The client cannot know which it was, says so, and does not try again."""
    app.faults.put([fault])
    async with client_of(app, retry=retry.RetryPolicy(attempts=5), sleep=Rest()) as client:
        with pytest.raises(errors.APIError) as caught:
            await client.weighted_backends.create({"description": "once"})
        found = [backend async for backend in client.weighted_backends.list()]

    assert caught.value.created == "maybe"
    assert len(found) == made


async def test_reads_and_changes_get_through_faults(app: App) -> None:
    rest = Rest()
    async with client_of(app, retry=retry.RetryPolicy(attempts=5), sleep=rest) as client:
        backend = await client.weighted_backends.create({})
        app.faults.put([
            Fault(kind="cut", method="PATCH", when="after", count=1),
            Fault(kind="status", status=429, retry_after="7", method="GET", count=1),
            Fault(kind="status", status=500, method="DELETE", count=2),
        ])  # fmt: skip
        assert (await client.weighted_backends.update(backend.id, {"description": "b"})).description == "b"
        assert (await client.weighted_backends.get(backend.id)).description == "b"
        await client.weighted_backends.delete(backend.id)

    assert len(rest.seconds) == 4
    assert 7 <= rest.seconds[1] < 8


async def test_another_profile_than_the_services_is_refused(app: App) -> None:
    other = "ngrok" if app.profile.name == "neutral" else "neutral"
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(client_of(app, profile=other))
        with pytest.raises(errors.InvalidRequest, match=app.profile.version_header):
            await client.api_keys.create({})
