"""No secret that was sent, and never the key, comes back in a message: canaries in every place that takes a secret."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_operator.api import errors, redaction, retry

from .doubles import KEY, Rest, Service, client_of, refusal

SECRET = "canary-7Hq2mZ-secret"
PEM = "-----BEGIN PRIVATE KEY-----\nCANARYline1abcdefghijkl\nCANARYline2mnopqrstuvwx\n-----END PRIVATE KEY-----\n"

PLACES: dict[str, dict[str, Any]] = {
    "tls_certificates": {"private_key_pem": PEM},
    "event_destinations": {
        "target": {
            "batch_stream": {"auth": {"creds": {"cloud_access_key_id": SECRET, "cloud_secret_access_key": SECRET}}},
            "monitoring": {"api_key": SECRET},
        }
    },
    "https_routes": {
        "webhook_verification": {"secret": SECRET},
        "oidc": {"client_secret": SECRET},
        "oauth": {"provider": {"code_host_a": {"client_secret": SECRET}}},
    },
}


def test_secret_members_are_those_that_the_shapes_hide() -> None:
    assert redaction.secret_members() == {
        "token",
        "private_key_pem",
        "cloud_access_key_id",
        "cloud_secret_access_key",
        "api_key",
        "secret",
        "client_secret",
    }


QUOTES: dict[str, Callable[[httpx.Request], str]] = {
    "the body": lambda request: request.content.decode(),
    "the body as Python shows it": lambda request: repr(json.loads(request.content)),
    "the key": lambda request: f"who is {request.headers['authorization']}?",
    "the beginning of the key": lambda _: f"{KEY[:12]}… is unknown",
    "the secret": lambda _: f"{SECRET} is too weak",
    "the beginning of the secret": lambda _: f"{SECRET[:12]}… is too weak",
    "the private key": lambda _: PEM,
    "a line of the private key": lambda _: PEM.splitlines()[2],
}


@pytest.mark.parametrize("quote", QUOTES.values(), ids=QUOTES.keys())
@pytest.mark.parametrize("collection", PLACES)
@pytest.mark.parametrize("profile", ["neutral", "ngrok"])
async def test_a_service_that_quotes_what_was_sent_is_not_repeated(
    quote: Callable[[httpx.Request], str], collection: str, profile: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ids = {"edge_id": "edghts_1"} if collection == "https_routes" else {}
    body = {**PLACES[collection], "private_key_pem": PEM, "client_secret": SECRET}

    def answer(request: httpx.Request) -> httpx.Response:
        return refusal(400, quote(request), code=quote(request))

    async with client_of(answer, profile=profile) as client:
        with pytest.raises(errors.InvalidRequest) as caught:
            await getattr(client, collection).create(body, **ids)

    shown = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value)) + caplog.text
    for canary in (KEY[:12], SECRET[:12], "CANARYline1", "CANARYline2"):
        assert canary not in shown
    assert redaction.HIDDEN in str(caught.value)


async def test_exceptions_of_the_library_that_quote_are_not_repeated() -> None:
    async with client_of(Service([httpx.ConnectError(f"Bearer {KEY} and {SECRET}")])) as client:
        with pytest.raises(errors.NotSent) as caught:
            await client.https_routes.put_module("r", "oidc", {"client_secret": SECRET}, edge_id="e")

    assert KEY not in str(caught.value)
    assert SECRET not in str(caught.value)


async def test_nothing_is_logged_of_keys_and_bodies(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service = Service([httpx.ReadError(KEY), refusal(400, KEY)])
    async with client_of(service, retry=retry.RetryPolicy(attempts=2), sleep=Rest()) as client:
        with pytest.raises(errors.InvalidRequest):
            await client.https_routes.put_module("r", "oidc", {"client_secret": SECRET}, edge_id="e")

    assert KEY not in caplog.text
    assert SECRET not in caplog.text


CLEANED = {
    "whole": ("is 'abcdefghijkl' wrong", "is '[hidden]' wrong"),
    "twice": ("abcdefghijkl abcdefghijkl", "[hidden] [hidden]"),
    "its beginning": ("starts with abcdefghij…", "starts with [hidden]…"),
    "cut by its end": ("abcdefghijk", "[hidden]"),
    "too little of it to matter": ("abcdef", "abcdef"),
    "another word": ("abcdefgh-", "[hidden]-"),
    "short ones whole": ("pin 1234!", "pin [hidden]!"),
    "lines": ("a\nb\r\n\tc", "a b c"),
    "control characters": ("a\x1b[31mb\u202ec\u2028d", "a [31mb c d"),
}


@pytest.mark.parametrize(("text", "expected"), CLEANED.values(), ids=CLEANED.keys())
def test_text_is_cleaned(text: str, expected: str) -> None:
    assert redaction.clean(text, ["abcdefghijkl", "1234", "", "a"]) == expected


@given(
    st.text(max_size=400), st.text(st.characters(codec="utf-8", exclude_characters="[]hiden…"), min_size=3, max_size=40)
)
def test_cleaned_text_is_short_and_without_the_secret(text: str, secret: str) -> None:
    cleaned = redaction.clean(f"{text}{secret}{text}", [secret])

    assert secret not in cleaned or not secret.strip() or secret in " ".join(text.split()) or " " in secret
    assert len(cleaned) <= redaction.MESSAGE_CHARACTERS
    assert cleaned.isprintable()
