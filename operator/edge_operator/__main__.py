"""The command line: `edge-operator run` and `edge-operator serve-api`. Every option is an environment variable too."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import BaseModel, ValidationError

from edge_operator.server.settings import ServerSettings
from edge_operator.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=BaseModel)
_FILE = click.Path(dir_okay=False, path_type=Path)


class _Duration(click.ParamType[float]):
    """`50ms`, `2s`, `1m` or a plain number of seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"([0-9]*\.?[0-9]+)(ms|s|m|h)?", str(value))
        if found is None:
            self.fail(f"{value!r} is not a duration; write 50ms, 2s or 1m", param, ctx)
        return float(found[1]) * {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0}[found[2]]


DURATION = _Duration()


def _option(flag: str, model: type[BaseModel], field: str, kind: Any = str, **more: Any) -> Callable[[F], F]:
    """An option that sets a field of a settings model; its help is the field's text, its default the field's."""
    info = model.model_fields[field]
    if info.is_required():
        more["required"] = True
    else:
        more |= {"default": info.default, "show_default": info.default not in (None, (), False)}
    variable = f"EDGE_OPERATOR_{flag.removeprefix('--').replace('-', '_').upper()}"
    text = " ".join((info.description or "").split())
    return click.option(flag, field, type=kind, envvar=variable, show_envvar=True, help=text, **more)


def _settings(model: type[M], values: dict[str, Any]) -> M:
    try:
        return model(**values)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)[0]
        text = found["msg"].removeprefix("Value error, ")
        if not found["loc"]:
            raise click.UsageError(text) from None
        flags = {p.name: p.opts[0] for p in click.get_current_context().command.params}
        raise click.BadParameter(text, param_hint=flags.get(str(found["loc"][0]), str(found["loc"][0]))) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="edge-operator", message="edge-operator %(version)s")
def cli() -> None:
    """Keep edges, routes, backends and certificates of a tunneling platform as Kubernetes resources.

    Exit codes: 0 after a graceful stop, 1 after a failure that the log explains, 2 for wrong options.
    """


@cli.command()
@_option("--kubeconfig", Settings, "kubeconfig", _FILE)
@_option("--namespace", Settings, "namespaces", multiple=True)
@_option("--api-url", Settings, "api_url")
@_option("--api-key-file", Settings, "api_key_file", _FILE)
@_option("--api-profile", Settings, "api_profile")
@_option("--api-rate", Settings, "api_requests_per_minute", int)
@_option("--api-ca-file", Settings, "api_ca_file", _FILE)
@_option("--operator-namespace", Settings, "operator_namespace")
@_option("--cluster-id", Settings, "cluster_id")
@_option("--identity", Settings, "identity")
@_option("--health-listen", Settings, "health_listen")
@_option("--log-format", Settings, "log_format", click.Choice(["plain", "json"]))
@_option("--log-level", Settings, "log_level", click.Choice(["debug", "info", "warning", "error"]))
@_option("--resync", Settings, "resync_seconds", DURATION)
@_option("--mirror-sessions", Settings, "mirror_sessions", bool, is_flag=True)
@_option("--sessions-interval", Settings, "sessions_interval_seconds", DURATION)
@_option("--grace", Settings, "grace_seconds", DURATION)
@_option("--call-timeout", Settings, "call_seconds", DURATION)
@_option("--concurrency", Settings, "concurrency", int)
@_option("--workers", Settings, "workers", int)
@_option("--backoff", Settings, "backoff_seconds", DURATION)
@_option("--backoff-limit", Settings, "backoff_limit_seconds", DURATION)
@_option("--lease", Settings, "lease_seconds", DURATION)
@_option("--lease-renew", Settings, "renew_seconds", DURATION)
@_option("--lease-retry", Settings, "retry_seconds", DURATION)
def run(**values: Any) -> None:
    """Run the operator: make the account match the custom resources, and keep it so."""
    settings = _settings(Settings, values)
    from edge_operator.kube import operator  # kopf and the Kubernetes client take a second that other commands save

    sys.exit(operator.main(settings))


@cli.command("plan")
@click.option(
    "-f",
    "--filename",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="Manifest file or folder, or - for standard input; may be given again.",
)
@_option("--kubeconfig", Settings, "kubeconfig", _FILE)
@click.option("--namespace", default="default", show_default=True, help="Namespace of manifests that name none.")
@_option("--api-url", Settings, "api_url")
@_option("--api-key-file", Settings, "api_key_file", _FILE)
@_option("--api-profile", Settings, "api_profile")
@_option("--api-ca-file", Settings, "api_ca_file", _FILE)
@_option("--operator-namespace", Settings, "operator_namespace")
@_option("--cluster-id", Settings, "cluster_id")
def plan(files: tuple[Path, ...], namespace: str, **values: Any) -> None:
    """Print what the operator would do for manifests, and why, against the live account. Nothing is done.

    Secrets in the same files count as if they were there already. Values of Secrets are never printed.

    Exit codes: 0 if every resource can go on, 1 if one would wait or stall, is paused or being deleted, or the plan
    failed, 2 for wrong options.
    """
    settings = _settings(Settings, values)
    from edge_operator.kube import commands

    sys.exit(commands.main(commands.plan(settings, files, namespace)))


@cli.command("import")
@click.argument("kinds", nargs=-1)
@click.option("--id", "ids", multiple=True, help="Import this object only; may be given again.")
@click.option("--namespace", default="default", show_default=True, help="Namespace that the manifests name.")
@_option("--api-url", Settings, "api_url")
@_option("--api-key-file", Settings, "api_key_file", _FILE)
@_option("--api-profile", Settings, "api_profile")
@_option("--api-ca-file", Settings, "api_ca_file", _FILE)
def import_(kinds: tuple[str, ...], ids: tuple[str, ...], namespace: str, **values: Any) -> None:
    """Print manifests for what the account holds: of the KINDS that are named, or of all.

    Each adopts its object by externalID with deletionPolicy: Retain; applying them changes nothing in the account.
    Secret values are never printed: a comment says which Secret a manifest needs.
    """
    settings = _settings(Settings, values)
    from edge_operator.kinds import KINDS

    if unknown := [k for k in kinds if k not in KINDS]:
        raise click.BadParameter(f"{', '.join(unknown)}: kinds are {', '.join(KINDS)}", param_hint="KINDS")
    from edge_operator.kube import commands

    sys.exit(commands.main(commands.import_(settings, kinds, ids, namespace)))


@cli.command("drain")
@_option("--kubeconfig", Settings, "kubeconfig", _FILE)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    envvar="EDGE_OPERATOR_NAMESPACE",
    show_envvar=True,
    help="Namespaces to drain; none means the whole cluster.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=DURATION,
    default=240.0,
    show_default=True,
    envvar="EDGE_OPERATOR_TIMEOUT",
    show_envvar=True,
    help="How long to wait for all to be gone, in seconds.",
)
@click.option("--yes", "sure", is_flag=True, help="Do it; without it the resources are only printed.")
def drain(kubeconfig: Path | None, namespaces: tuple[str, ...], timeout_seconds: float, sure: bool) -> None:
    """Delete every resource of every kind, and wait until a running operator has deleted what they stand for.

    Each resource goes as its deletionPolicy says. What waits for what is printed; nothing else is removed.

    Exit codes: 0 once all are gone, 1 if some are left after the time-out, 2 for wrong options, or without --yes where
    there is something to delete.
    """
    from edge_operator.kube import commands

    sys.exit(commands.main(commands.drain(kubeconfig, namespaces, sure=sure, timeout_seconds=timeout_seconds)))


@cli.command("serve-api")
@click.option(
    "--listen",
    default="127.0.0.1:8080",
    show_default=True,
    envvar="EDGE_OPERATOR_LISTEN",
    show_envvar=True,
    help="HOST:PORT to listen on; port 0 lets the system pick one, and the line printed when ready names it.",
)
@_option("--database", ServerSettings, "database", _FILE)
@_option("--seed-api-key", ServerSettings, "seed_api_key")
@_option("--profile", ServerSettings, "profile")
@_option("--page-size", ServerSettings, "page_size", int)
@_option("--rate-limit", ServerSettings, "rate_limit", int)
@_option("--retry-after", ServerSettings, "retry_after", bool)
@_option("--latency", ServerSettings, "latency_seconds", DURATION)
@_option("--echo-secrets", ServerSettings, "echo_secrets", bool)
@_option("--unauthenticated-status", ServerSettings, "unauthenticated_status", int)
@_option("--registered-id", ServerSettings, "registered_ids", multiple=True)
@_option("--request-log", ServerSettings, "request_log", _FILE, hidden=True)
@_option("--control", ServerSettings, "control", bool, is_flag=True, hidden=True)
def serve_api(listen: str, **values: Any) -> None:
    """Serve the reference management API: the whole API document, kept in a SQLite file.

    For demos, tests, and trying things out without an account. The OpenAPI document is at /openapi.json.
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise click.BadParameter(f"{listen!r} is not HOST:PORT, such as 127.0.0.1:8080", param_hint="--listen")
    registered = values["registered_ids"] or None  # no id at all means that every one will do
    values |= {"host": host.strip("[]"), "port": int(port), "registered_ids": registered}
    settings = _settings(ServerSettings, values)
    from edge_operator.server.serve import serve

    sys.exit(asyncio.run(serve(settings)))


def main() -> None:
    """The console script."""
    cli(prog_name="edge-operator")


if __name__ == "__main__":
    main()
