"""What is written for an object that is there already."""

from __future__ import annotations

from typing import Any

from edge_operator.declare import Body
from edge_operator.engine import brownfield
from edge_operator.engine.brownfield import Manifest
from edge_operator.kinds import KINDS


def written(kind: str, answer: Body) -> Manifest:
    found = brownfield.manifest(KINDS[kind], answer, "default")
    assert found is not None
    return found


def test_the_name_of_a_resource_follows_from_the_id_for_ever() -> None:
    """Whoever imports again with a later version gets the same files."""
    assert brownfield.name_of(KINDS["WeightedBackend"], "bkdwd_1") == "weightedbackend-693612e469"


def test_a_list_that_has_to_be_there_is_said_though_it_is_empty() -> None:
    found = written("WeightedBackend", {"id": "bkdwd_1", "backends": {}})

    assert found.document["spec"]["backends"] == []
    assert found.obstacle == "spec.backends: List should have at least 1 item after validation, not 0"


def test_a_certificate_for_everybody_is_imported_as_one_that_is_meant_so() -> None:
    def spec(principals: list[str]) -> dict[str, Any]:
        key = {"public_key": "ssh-ed25519 AAAA", "ssh_certificate_authority_id": "sshca_1"}
        found = written("SSHHostCertificate", {"id": "shcrt_1", "principals": principals, **key})
        assert found.obstacle == ""
        return dict(found.document["spec"])

    assert spec([])["allowAnyPrincipal"] is True
    assert "allowAnyPrincipal" not in spec(["web-1.example.com"])
