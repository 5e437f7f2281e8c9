"""`make demo`: custom resources become objects of a management API, on a real Kubernetes API server.

`python -m harness.demo` stays until Ctrl-C. With `--once` it deletes the samples again, looks whether the account is
empty, and says by its exit code whether all went well.
"""

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import yaml

from edge_operator.api import profiles
from harness import binaries, demo_account, kind
from harness.demo_agents import SECRET, Agents
from harness.demo_resources import NotDone, Row, Watch
from harness.demo_screen import Screen
from harness.demo_world import NAMESPACE, LocalWorld, World, seconds_since
from harness.operator import NAMESPACE as OPERATORS
from harness.operator import ROOT
from harness.processes import HarnessError, wait_until

SAMPLES = ROOT / "docs" / "samples"
LIMIT_SECONDS = 90.0
OK, FAILED, INTERRUPTED = 0, 1, 130


class Demo:
    """One run of the demo in a world that is up."""

    def __init__(self, world: World, screen: Screen, samples: Path, limit_seconds: float) -> None:
        self._world = world
        self._screen = screen
        self._samples = samples
        self._limit = limit_seconds
        self._agents = Agents(world, screen, NAMESPACE, limit_seconds)
        self._watch = Watch(world.cluster, NAMESPACE, screen, world.trouble)
        self._before = {item["id"] for _, item in self._account()}
        """What is in the account to begin with: the seeded API key, where keys are a kind of the operator."""

    def apply(self) -> list[Row]:
        """Apply the samples and watch them become Ready.

        Raises:
            NotDone: some did not.
        """
        cluster, started = self._world.cluster, time.monotonic()
        if cluster.get(f"/api/v1/namespaces/{NAMESPACE}") is None:
            cluster.create_namespace(NAMESPACE)
        self._screen.title(f"kubectl apply -n {NAMESPACE} -f {_shown(self._samples)}")
        cluster.apply(self._samples, "-n", NAMESPACE)
        rows = self._watch.until_ready(self._limit)
        self._screen.say(f"  {len(rows)} of {len(rows)} resources are Ready after {seconds_since(started)}", "green")
        return rows

    def show(self, rows: Sequence[Row]) -> None:
        """Show what came of it in the account and in the cluster."""
        found = [(path, item) for path, item in self._account() if item["id"] not in self._before]
        self._screen.title(f"What is now in the account at {self._world.api[0]}")
        self._screen.table(demo_account.COLUMNS, demo_account.account_rows(found, rows))
        self._screen.title(f"Secrets that the operator wrote to namespace {NAMESPACE}")
        self._screen.table(demo_account.SECRET_COLUMNS, demo_account.secret_rows(self._world.cluster, NAMESPACE))

    def command(self) -> None:
        """Have an agent come online and restart it, where the samples make a credential for it.

        Raises:
            HarnessError: that did not work.
        """
        if self._has_agent():
            self._agents.show()

    def _has_agent(self) -> bool:
        return self._world.cluster.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}") is not None

    def suggest(self) -> None:
        """Say how to look around, and what to try."""
        url, _, key_file = self._world.api
        cluster, say = self._world.cluster, self._screen.say
        self._screen.title("Look around, in another terminal (any kubectl will do; ours is named here)")
        say(f"  export KUBECONFIG={self._kubeconfig()}")
        say(f"  alias kubectl={binaries.find('kubectl')}")
        say("  kubectl get edge                                  # every resource of the operator")
        say(f"  kubectl get tsn -n {OPERATORS}                     # agents that are online")
        say("  kubectl describe httpsroute example               # conditions and events")
        say("  kubectl explain httpsroute.spec.circuitBreaker    # every field has a text")
        certificate = "'{{index .data \"ssh-host-key-cert.pub\" | base64decode}}'"
        say(f"  kubectl get secret example-sshhostcertificate -o go-template={certificate} | ssh-keygen -L -f -")
        self._screen.title("Try what happens")
        change = '\'{"spec":{"description":"changed"}}\''
        say(f"  kubectl patch weightedbackend example --type=merge -p {change}   # one PATCH of the account")
        say("  kubectl delete httpsedge example --wait=false                               # waits for its route")
        say(f"  kubectl delete -f {_shown(self._samples)} && kubectl apply -f {_shown(self._samples)}")
        profile = profiles.load("neutral")
        version = f"{profile.version_header}: {profile.version}"
        self._screen.title("Behind it")
        self._screen.pairs([
            ("API", f"{url}   (OpenAPI: {url}/openapi.json)"),
            ("API key", key_file),
            ("", f'curl -H "Authorization: Bearer $(cat {key_file})" -H "{version}" {url}/edges/https'),
            *((f"{name} log", command) for name, command in self._world.logs()),
            ("all files", f"{cluster.folder}   (removed at the end)"),
        ])  # fmt: skip

    def delete(self, rows: Sequence[Row]) -> list[str]:
        """Delete the samples and watch them go; what is left in the account and the cluster that should not be.

        Raises:
            NotDone: some resources did not go.
        """
        cluster, started = self._world.cluster, time.monotonic()
        self._screen.title(f"kubectl delete -n {NAMESPACE} -f {_shown(self._samples)}")
        if self._has_agent():
            self._agents.leave()
        cluster.kubectl("delete", "-n", NAMESPACE, "--wait=false", "-f", self._samples)
        self._watch.until_gone(rows, self._limit)
        self._screen.say(f"  all are gone after {seconds_since(started)}", "green")
        left = [f"{path}/{item['id']}" for path, item in self._account() if item["id"] not in self._before]
        with contextlib.suppress(HarnessError):  # the garbage collector needs a moment; what stays is reported
            wait_until(lambda: not demo_account.secret_rows(cluster, NAMESPACE), "the Secrets to go", 30)
        left += [f"secret/{row[0]}" for row in demo_account.secret_rows(cluster, NAMESPACE)]
        self._screen.title(f"What is now in the account at {self._world.api[0]}")
        self._screen.say(
            "  " + ("nothing of the samples: it is empty again" if not left else f"still there: {', '.join(left)}")
        )
        return left

    def explain(self, why: NotDone) -> None:
        """Show why some resources did not get there."""
        self._screen.title(str(why))
        for row in why.rows:
            self._screen.say(f"  {row.key}", "bold")
            for condition in row.conditions or ("no conditions: the operator has not looked at it",):
                self._screen.say(f"    {condition}")
        self._screen.title("The operator's last log lines")
        self._screen.say(self._world.operator_log())

    def _account(self) -> list[tuple[str, dict[str, Any]]]:
        url, key, _ = self._world.api
        return demo_account.objects(url, key)

    def _kubeconfig(self) -> Path:
        """A kubeconfig like the cluster's, with our namespace as its default."""
        document = yaml.safe_load(self._world.cluster.kubeconfig.read_text())
        for context in document["contexts"]:
            context["context"]["namespace"] = NAMESPACE
        path = self._world.cluster.folder / "demo.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path


def present(world: World, screen: Screen, options: argparse.Namespace) -> int:
    """Show the demo in a world that is up; the exit code."""
    demo = Demo(world, screen, options.samples.resolve(), options.limit)
    try:
        rows = demo.apply()
        demo.show(rows)
        demo.command()
        if not options.once:
            demo.suggest()
            screen.say("\nAll of it runs until you press Ctrl-C, which stops everything and removes its files.", "bold")
            _stay(world)
            return FAILED
        left = demo.delete(rows)
    except NotDone as why:
        demo.explain(why)
        screen.say("\nThe demo FAILED: see above.", "bold red")
        return FAILED
    if left:
        screen.say("\nThe demo FAILED: something was left behind.", "bold red")
        return FAILED
    screen.say(
        f"\nThe demo SUCCEEDED: {len(rows)} resources became Ready, and nothing of them was left behind.", "bold green"
    )
    return OK


def _stay(world: World) -> None:
    """Stay until Ctrl-C, or until one of the parts ends by itself.

    Raises:
        HarnessError: one of them did.
    """
    while not world.trouble():
        time.sleep(0.5)
    raise HarnessError(f"{world.trouble()}:\n{world.operator_log()}")


def _shown(path: Path) -> str:
    """A path as the user would write it, relative to the working directory where it is below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--once", action="store_true", help="delete the samples again and exit with a verdict")
    parser.add_argument("--cluster", choices=("local", "kind"), default="local", help="what it runs on")
    parser.add_argument("--samples", type=Path, default=SAMPLES, help="file or folder that is applied")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds until all must be Ready, or gone")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code. A stop by Ctrl-C or SIGTERM is a success, unless a verdict was asked for."""
    options, screen, started = arguments(words), Screen(), time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has told a background job to ignore the first
        signal.signal(number, _interrupt)
    screen.say("The demo of edge-operator, on a real Kubernetes API server.", "bold")
    try:
        with contextlib.ExitStack() as stack:
            world = stack.enter_context(_world(options.cluster, screen))
            stack.callback(_leave, screen)
            screen.say(f"  everything is up after {seconds_since(started)}", "green")
            return present(world, screen, options)
    except KeyboardInterrupt:
        screen.say("stopped; nothing is left running")
        return INTERRUPTED if options.once else OK
    except HarnessError as error:
        screen.say(f"\n{error}", "red")
        return FAILED


def _world(cluster: str, screen: Screen) -> contextlib.AbstractContextManager[World]:
    return kind.KindWorld(screen) if cluster == "kind" else LocalWorld(screen)


def _leave(screen: Screen) -> None:
    """Say what happens now; another Ctrl-C would only leave something behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    screen.say("\nstopping the operator, the API and the control plane ...")


if __name__ == "__main__":
    sys.exit(main())
