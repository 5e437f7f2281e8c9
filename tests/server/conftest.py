from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

import pytest

from .account import Account


class Opener(Protocol):
    def __call__(self, **values: Any) -> Account: ...


@pytest.fixture
async def opened() -> AsyncIterator[Opener]:
    """Opens accounts with other settings, and closes them at the end."""
    accounts: list[Account] = []

    def open_account(**values: Any) -> Account:
        accounts.append(Account.open(**values))
        return accounts[-1]

    yield open_account
    for account in accounts:
        await account.client.aclose()
        account.app.close()


@pytest.fixture
def account(opened: Opener) -> Account:
    return opened()
