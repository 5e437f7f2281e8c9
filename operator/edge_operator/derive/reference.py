"""Pages for readers: one for each kind, one for the reasons in a status, and the table of kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from edge_operator.api import catalog
from edge_operator.declare import CustomResource, Issued, Kind, Reference
from edge_operator.derive import crd, rows, samples
from edge_operator.derive.structural import listed
from edge_operator.engine import reasons

Lines = Iterator[str]


def page(kind: CustomResource[Any], kinds: Iterable[CustomResource[Any]]) -> str:
    """Everything there is to know of a kind."""
    return "\n".join([*_head(kind), *_spec(kind), *_secret(kind, kinds), *_status(kind), *_sample(kind)]) + "\n"


def table(kinds: Iterable[CustomResource[Any]], folder: str) -> str:
    """The kinds, one a line; `folder` is where the pages are, as seen from the page that the table stands in."""
    found = ["| Kind | Short | What it is | Id | Secret |", "|---|---|---|---|---|"]
    for kind in kinds:
        what = crd.description(kind).removeprefix(f"{kind.name} ")
        keys = ", ".join(f"`{output.key}`" for output in (kind.outputs if isinstance(kind, Kind) else ())) or "none"
        id_ = f"`{kind.api.prefix}…`" if isinstance(kind, Kind) else "none"
        link = f"[{kind.name}]({folder}{kind.name.lower()}.md)"
        found.append(f"| {link} | `{'`, `'.join(kind.short)}` | {_cell(what)} | {id_} | {keys} |")
    return "\n".join(found) + "\n"


def reasons_page() -> str:
    """Every word that a condition's or an event's reason may be."""
    found = [
        "# Reasons",
        "",
        "What the `reason` of a condition or an event says.",
        "The list is closed: no other word appears.",
    ]
    groups: tuple[tuple[str, str, type[StrEnum]], ...] = (
        ("In sync", "`Ready=True`.", reasons.Ready),
        ("Waiting", "`Ready=False` and `Reconciling=True`: time, or what is waited for, cures it.", reasons.Waits),
        ("Stalled", "`Ready=False` and `Stalled=True`: somebody has to change something.", reasons.Stalls),
        ("Events", "Written when something was done or found, never on a pass that changed nothing.", reasons.Events),
    )
    for title, text, group in groups:
        found += ["", f"## {title}", "", text, "", "| Reason | Meaning |", "|---|---|"]
        found += [f"| `{reason}` | {_cell(reasons.MEANINGS[reason])} |" for reason in group]
    return "\n".join(found) + "\n"


def _head(kind: CustomResource[Any]) -> Lines:
    yield from (f"# {kind.name}", "", crd.description(kind), "")
    yield from ("| | |", "|---|---|")
    yield f"| Short name | `{'`, `'.join(kind.short)}` |"
    if not isinstance(kind, Kind):
        yield f"| Scope | {'one namespace' if kind.namespaced else 'the whole cluster'} |"
        return
    yield f"| Collection of the management API | `{kind.api.path}` |"
    yield f"| Id | starts with `{kind.api.prefix}` |"
    yield f"| When the remote object vanished | {kind.on_remote_missing} (`onRemoteMissing` overrides) |"
    if isinstance(kind.lifecycle, Issued):
        yield "| Life | issued for a time, and issued anew before it ends |"
    assumed = sorted(kind.api.assumed)
    modules = sorted(f"{name} {verb}" for name, module in kind.api.modules.items() for verb in module.assumed)
    if assumed or modules:
        shown = listed([f"`{verb}`" for verb in (*assumed, *modules)], "and")
        yield f"| Assumed operations | {shown}: the API document does not show them |"


def _spec(kind: CustomResource[Any]) -> Lines:
    found = rows.spec(kind.spec, crd.spec(kind))
    sent = isinstance(kind, Kind)
    yield from (
        "",
        "## spec",
        "",
        "| Field | Type | Meaning |" + " On the wire |" * sent,
        "|---|---|---|" + "---|" * sent,
    )
    for row in found.rows:
        type_ = f"{row.type}, required" if row.required else row.type
        yield f"| `{row.path}` | {type_} | {_cell(row.meaning)} |" + f" {row.wire} |" * sent
    if found.rules:
        yield from ("", "Rules over several fields, checked when the resource is applied:", "")
        for path, message in found.rules:
            yield f"- `{path}`: {_cell(message)}."


def _secret(kind: CustomResource[Any], kinds: Iterable[CustomResource[Any]]) -> Lines:
    if not isinstance(kind, Kind) or not kind.outputs:
        return
    yield from ("", "## Secret", "")
    yield f"Written to `spec.secretName`, or to `<name>-{kind.name.lower()}` when that is left out."
    yield from ("", "| Key | Value |", "|---|---|")
    for output in kind.outputs:
        yield f"| `{output.key}` | {_cell(_output(kind, output.source, kinds))} |"


def _output(kind: Kind[Any], source: str, kinds: Iterable[CustomResource[Any]]) -> str:
    if source == "private_key":
        return "The private key, where the operator made it."
    if source.startswith("previous."):
        return f"The predecessor's {source.partition('.')[2]}, while both are good."
    if "." in source:
        field, member = source.split(".")
        reference = next(mark for mark in kind.spec.model_fields[field].metadata if isinstance(mark, Reference))
        named = next(other for other in kinds if isinstance(other, Kind) and other.name in reference.kinds)
        return str(named.api.read.model_fields[member].description)
    return str(kind.api.read.model_fields[source].description)


def _status(kind: CustomResource[Any]) -> Lines:
    yield from ("", "## status", "", "| Field | Type | Meaning |", "|---|---|---|")
    for path, type_, meaning in rows.status(crd.schema(kind)["properties"]["status"]):
        yield f"| `{path}` | {type_} | {_cell(meaning)} |"
    yield from ("", "What a condition's reason means stands in [Reasons](reasons.md).")


def _sample(kind: CustomResource[Any]) -> Lines:
    if not samples.shown(kind):
        return
    yield from ("", "## Sample", "", f"Also in [docs/samples](../samples/{samples.file(kind)}).")
    yield from ("", "```yaml", samples.text(kind).rstrip(), "```")
    referenced = [
        f"`{prefix}` ({meaning})" for prefix, meaning in catalog.REFERENCED_ONLY.items() if prefix in kind.example
    ]
    if referenced:
        yield ""
        yield f"Ids that start with {listed(referenced)} stand for objects without a custom resource of their own."


def _cell(text: str) -> str:
    """Text that stands in a cell of a table as it is."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")
