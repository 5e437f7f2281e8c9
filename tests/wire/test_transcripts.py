"""Every transcript, each against an account of its own."""

from __future__ import annotations

from typing import Any

import pytest

from wire import document, matching, material, transcript
from wire.api import Api, serving
from wire.transcript import ABSENT, Exchange, Transcript

TRANSCRIPTS = transcript.read_all()


@pytest.mark.parametrize("conversation", TRANSCRIPTS, ids=str)
async def test_the_service_answers_as_the_document_says(conversation: Transcript) -> None:
    known: dict[str, Any] = {"material": material.MATERIAL}
    async with serving(**conversation.settings) as api:
        for exchange in conversation.exchanges:
            await _judge(api, exchange, known, f"{conversation.topic}.txt:{exchange.line}")


async def _judge(api: Api, exchange: Exchange, known: dict[str, Any], where: str) -> None:
    path = matching.expand(exchange.path, known)
    headers = matching.expand(exchange.headers, known)
    body = exchange.body if exchange.body is ABSENT else matching.expand(exchange.body, known)
    response = await api.call(exchange.method, path, body, headers)
    shown = f"{where}: {exchange.method} {path} answered {response.status_code} {response.text[:1000]}"
    assert exchange.status == response.status_code, shown
    if response.status_code == 204:
        return
    answer = response.json()
    if exchange.word is not None:
        assert matching.expand(exchange.word, known) in answer["msg"], shown
    if exchange.shape is not None or exchange.expected is not ABSENT:
        expected = matching.expand(_expected(exchange, api.base + path), known)
        assert [] == list(matching.differences(expected, answer, api.base)), shown
    if exchange.name is not None:
        known[exchange.name] = answer


def _expected(exchange: Exchange, uri: str) -> Any:
    given = exchange.expected
    if exchange.shape is None:
        return given
    if exchange.is_list:
        items = next(o.items for o in document.OPERATIONS if o.items and o.answer == exchange.shape)
        given = [] if given is ABSENT else given
        listed = [matching.complete(exchange.shape, item) for item in given]
        return {items: listed, "uri": uri.partition("?")[0], "next_page_uri": None}
    return matching.complete(exchange.shape, {} if given is ABSENT else given)
