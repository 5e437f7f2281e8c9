"""No secret in an error, a log or the request log, wherever it is put."""

from __future__ import annotations

import logging

import pytest

from .account import Account
from .conftest import Opener

CANARY = "canary-0123456789-canary"


async def test_a_secret_in_a_body_that_is_refused_is_not_repeated(
    opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    account: Account = opened(control=True)
    caplog.set_level(logging.DEBUG)
    edge = await account.make("/edges/https")
    route = f"/edges/https/{edge['id']}/routes"
    path = f"{route}/{(await account.make(route, match='/'))['id']}"
    bodies = [
        ("POST", "/tls_certificates", {"certificate_pem": "junk", "private_key_pem": CANARY}),
        ("POST", "/tls_certificates", {"certificate_pem": 1, "private_key_pem": CANARY}),
        ("POST", "/tls_certificates", {"certificate_pem": "junk", "private_key_pem": [CANARY]}),
        ("PUT", f"{path}/oidc", {"client_secret": [CANARY]}),
        ("PUT", f"{path}/oidc", {"client_secret": CANARY, "issuer": "x"}),
        ("PUT", f"{path}/oauth", {"provider": {"os_vendor": {"client_secret": {CANARY: CANARY}}}}),
        ("PUT", f"{path}/oauth", {"provider": {"os_vendor": {"client_secret": CANARY, "scopes": ["s"]}}}),
        ("PUT", f"{path}/webhook_verification", {"provider": "x", "secret": CANARY}),
        ("PUT", f"{path}/webhook_verification", {"provider": "github", "secret": {"x": CANARY}}),
        ("PUT", f"{path}/saml", {"idp_metadata": f"<{CANARY}/>"}),
        ("POST", "/event_destinations", {"target": {"monitoring": {"api_key": [CANARY]}}}),
        ("POST", "/event_destinations", {"target": {"monitoring": {"api_key": CANARY, "x": 1}}}),
        (
            "POST",
            "/event_destinations",
            {"target": {"data_stream": {"auth": {"creds": {"cloud_secret_access_key": CANARY}}}}},
        ),
    ]
    for method, where, body in bodies:
        await account.refused(method, where, body)
        assert CANARY not in (await account.client.request(method, where, json=body)).text
    for header in (f"Bearer {CANARY}", CANARY, f"Basic {CANARY}"):
        response = await account.client.get("/api_keys", headers={"Authorization": header})
        assert CANARY not in response.text
    for cut in range(1, 60, 7):
        raw = (b'{"client_secret": "%s"' % CANARY.encode())[:-cut]
        response = await account.client.put(f"{path}/oidc", content=raw, headers={"Content-Type": "application/json"})
        assert CANARY not in response.text
    assert CANARY not in caplog.text
    assert CANARY not in str(await account.ask("GET", "/_control/requests"))
    assert CANARY not in repr(account.app.settings.model_copy(update={"seed_api_key": CANARY}))
