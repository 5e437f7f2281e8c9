"""The operator's rights are the least that work."""

from __future__ import annotations

from edge_operator.derive import access
from edge_operator.kinds import DECLARED, KINDS, MIRRORS, WATCHED
from edge_operator.kube import bootstrap, operator

EVERY = DECLARED.values()
OWN = access.own(EVERY)
ALL = [*access.watched(EVERY), *access.cluster(EVERY), *access.identity(), *access.definitions(EVERY), *OWN]
ENDING = {"tunnelsessioncommands"}
"""What goes some time after it has ended, if its spec says so."""


def verbs(rules: access.Rules, resource: str) -> set[str]:
    return {verb for rule in rules if resource in rule["resources"] for verb in rule["verbs"]}


def test_nothing_is_granted_by_wildcard() -> None:
    for rule in [*ALL, *access.view(DECLARED.values()), *access.edit(DECLARED.values())]:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_every_kind_is_watched_and_reported_on() -> None:
    for kind in WATCHED.values():
        besides = "delete" if kind.plural in ENDING else "patch"
        assert verbs(ALL, kind.plural) == {"get", "list", "watch", besides}
        assert verbs(ALL, f"{kind.plural}/status") == {"patch"}


def test_what_the_operator_mirrors_is_made_and_removed_in_its_own_namespace_alone() -> None:
    mirrored = [kind.plural for kind in MIRRORS.values()]

    assert mirrored == ["tunnelsessions"]
    assert verbs(OWN, "tunnelsessions") == {"get", "list", "create", "delete"}
    assert verbs(OWN, "tunnelsessions/status") == {"patch"}
    assert verbs(access.watched(DECLARED.values()), "tunnelsessions") == set()


def test_people_look_at_what_is_mirrored_and_do_not_write_it() -> None:
    assert verbs(access.view(DECLARED.values()), "tunnelsessions") == {"get", "list", "watch"}
    assert verbs(access.edit(DECLARED.values()), "tunnelsessions") == set()


def test_the_operator_deletes_what_it_mirrors_and_what_has_ended_and_replaces_nothing() -> None:
    """Secrets follow their owner; a resource is deleted by whoever made it, or by the time that its spec gives."""
    rules = [rule for rule in ALL if {"delete", "deletecollection"} & {*rule["verbs"]}]

    assert {resource for rule in rules for resource in rule["resources"]} == {"tunnelsessions", *ENDING}
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
    for rule in access.own(WATCHED.values()):
        assert rule["verbs"] == ["create"] or rule["resourceNames"]


def test_people_who_edit_do_not_write_a_status() -> None:
    for rule in access.edit(DECLARED.values()):
        assert not [resource for resource in rule["resources"] if "/" in resource]


def test_people_who_view_only_read() -> None:
    assert {verb for rule in access.view(DECLARED.values()) for verb in rule["verbs"]} == {"get", "list", "watch"}
