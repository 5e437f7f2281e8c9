"""Samples: one for each kind, and together they make one working whole."""

from __future__ import annotations

from typing import Any

import pytest

from edge_operator.declare import CustomResource
from edge_operator.derive import samples
from edge_operator.engine import project, references
from edge_operator.kinds import DECLARED

every_kind = pytest.mark.parametrize("kind", DECLARED.values(), ids=DECLARED)


@every_kind
def test_samples_are_valid(kind: CustomResource[Any]) -> None:
    kind.spec.model_validate(samples.spec(kind))


@every_kind
def test_what_a_sample_refers_to_is_in_the_samples(kind: CustomResource[Any]) -> None:
    spec = kind.spec.model_validate(samples.spec(kind))
    manifests = [manifest for other in DECLARED.values() for manifest in samples.manifests(other)]
    named = {(m["kind"], m["metadata"]["name"]) for m in manifests}
    keys = {(m["metadata"]["name"], key) for m in manifests if m["kind"] == "Secret" for key in m["stringData"]}

    assert {pointer.named for pointer in references.pointers(spec)} - {None} <= named
    assert {(ref.name, ref.key) for ref in references.secret_keys(spec)} <= keys


@every_kind
def test_a_sample_shows_every_module(kind: CustomResource[Any]) -> None:
    modules = {field.alias for field in project.fields(kind.spec) if field.module}

    assert modules <= samples.spec(kind).keys()


def test_samples_make_no_name_twice() -> None:
    manifests = [manifest for kind in DECLARED.values() for manifest in samples.manifests(kind)]
    named = [(m["kind"], m["metadata"]["name"]) for m in manifests]

    assert len(set(named)) == len(named)
