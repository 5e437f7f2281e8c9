"""The rig in which orders to agents and the mirror of sessions are tried."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from doubles.command_rig import CommandRig


@pytest.fixture
async def rig() -> AsyncIterator[CommandRig]:
    async with CommandRig() as found:
        yield found
