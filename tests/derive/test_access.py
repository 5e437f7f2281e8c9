"""The operator's rights are the least that work."""

from __future__ import annotations

from edge_operator.derive import access
from edge_operator.kinds import DECLARED, KINDS
from edge_operator.kube import bootstrap, operator

EVERY = DECLARED.values()
ALL = [*access.watched(EVERY), *access.cluster(EVERY), *access.identity(), *access.definitions(EVERY), *access.own()]


def verbs(rules: access.Rules, resource: str) -> set[str]:
    return {verb for rule in rules if resource in rule["resources"] for verb in rule["verbs"]}


def test_nothing_is_granted_by_wildcard() -> None:
    for rule in [*ALL, *access.view(DECLARED.values()), *access.edit(DECLARED.values())]:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_every_kind_is_watched_and_reported_on() -> None:
    for kind in DECLARED.values():
        assert verbs(ALL, kind.plural) == {"get", "list", "watch", "patch"}
        assert verbs(ALL, f"{kind.plural}/status") == {"patch"}


def test_the_operator_deletes_and_replaces_nothing() -> None:
    """Secrets follow their owner; a resource is deleted by whoever made it."""
    deleting = {(*rule["resources"],) for rule in ALL if {"delete", "deletecollection"} & {*rule["verbs"]}}

    assert deleting == set()
    assert "update" not in verbs(ALL, "secrets")


def test_of_the_cluster_itself_one_name_is_read() -> None:
    (rule,) = access.identity()

    assert rule["resourceNames"] == ["kube-system"]
    assert rule["verbs"] == ["get"]


def test_of_the_definitions_our_own_are_read() -> None:
    (rule,) = access.definitions(KINDS.values())

    assert rule["resourceNames"] == sorted(kind.crd for kind in KINDS.values())
    assert verbs(ALL, "customresourcedefinitions") == {"get"}


def test_the_names_are_those_that_the_operator_uses() -> None:
    assert access.LEASE == operator.LEASE_NAME
    assert access.DIGEST_SECRET == bootstrap.DIGEST_SECRET


def test_the_own_namespace_is_touched_by_name() -> None:
    for rule in access.own():
        assert rule["verbs"] == ["create"] or rule["resourceNames"]


def test_people_who_edit_do_not_write_a_status() -> None:
    for rule in access.edit(DECLARED.values()):
        assert not [resource for resource in rule["resources"] if "/" in resource]


def test_people_who_view_only_read() -> None:
    assert {verb for rule in access.view(DECLARED.values()) for verb in rule["verbs"]} == {"get", "list", "watch"}
