from __future__ import annotations

import pytest
from doubles.rig import Rig
from edge_operator.kinds import KINDS


@pytest.mark.parametrize("kind", KINDS)
async def test_create_sync_delete(kind):
    async with Rig() as rig:
        rig.sample(kind)
        await rig.settle()
        print("\n".join(rig.calls))
        print("\n".join(rig.cluster.writes))
        print(rig.message(kind))
        assert rig.ready(kind)
        rig.forget()
        await rig.restart()
        await rig.settle()
        assert rig.calls == []
        assert rig.writes == []
        for (k, _, name) in list(rig.api.objects):
            if k in KINDS:
                rig.delete(k, name)
        await rig.settle()
        print("\n".join(rig.calls))
        print("\n".join(rig.cluster.writes))
        assert rig.everything_remote() == []
        assert [k for k in rig.api.objects if k[0] in KINDS] == []
