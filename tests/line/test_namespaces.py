"""A namespace that is being deleted takes no new Secret: what was made for one is deleted, and nothing more is made."""

from __future__ import annotations

import pytest

from doubles.hands import NAMESPACE
from doubles.rig import Rig
from edge_operator.declare import Issued, Token
from edge_operator.kinds import KINDS

from .test_life import made_needs

WITH_SECRETS = [name for name, kind in KINDS.items() if isinstance(kind.lifecycle, Token | Issued)]


@pytest.mark.parametrize("kind", WITH_SECRETS)
@pytest.mark.fault("a namespace is deleted just before an output Secret is written")
async def test_what_cannot_be_published_because_the_namespace_goes_is_deleted_and_not_made_again(kind):
    async with Rig() as rig:
        await made_needs(rig, kind)
        rig.forget()
        rig.cluster.terminating = {NAMESPACE}
        rig.sample(kind)
        await rig.settle()
        assert [call.split()[0] for call in rig.calls if not call.startswith("GET")] == ["POST", "DELETE"]
        assert rig.remote(kind) == []
        assert rig.reason(kind) == "Deleting"

        rig.delete(kind)
        await rig.settle()
        assert not rig.exists(kind)
        assert len([call for call in rig.calls if call.startswith("POST")]) == 1
