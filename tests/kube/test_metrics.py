"""What is shown to Prometheus and to probes."""

import aiohttp
import pytest

from edge_operator.kube.health import Health, address
from edge_operator.kube.metrics import VALUES, Metrics
from edge_operator.kube.schedule import Priority, Snapshot
from edge_operator.kube.transport import Call

NAMES = """
edge_operator_abandoned_total edge_operator_api_call_seconds_bucket edge_operator_api_calls_total
edge_operator_cluster_requests_total edge_operator_cluster_writes_total edge_operator_connections
edge_operator_drift_corrections_total
edge_operator_events_total edge_operator_info edge_operator_leader edge_operator_orphaned
edge_operator_queue_oldest_seconds
edge_operator_queue_ready edge_operator_queue_running edge_operator_queue_scheduled
edge_operator_reconcile_seconds_bucket edge_operator_reconciles_total edge_operator_recoveries_total
edge_operator_resources
"""


def full() -> Metrics:
    """Metrics of an operator that has done a little of everything."""
    metrics = Metrics()
    metrics.reconciled("HTTPSEdge", "InSync", 0.2)
    metrics.called("edges/https", "POST", 201, 0.05)
    metrics.requested(Call("PATCH", "httpsedges/status", 200, 0.01))
    metrics.requested(Call("PATCH", "httpsedges/status", 409, 0.01))
    metrics.requested(Call("WATCH", "secrets", 0, 5.0))
    metrics.corrected("HTTPSEdge")
    metrics.recovered("HTTPSEdge", "adopted")
    metrics.abandoned("HTTPSEdge")
    metrics.orphaned("HTTPSEdge", 2)
    metrics.event("created")
    metrics.watch_queue(lambda: Snapshot({Priority.EDIT: 2, Priority.RETRY: 0, Priority.RESYNC: 1}, 3, 4, 5.5))
    metrics.watch_resources(lambda: {("HTTPSEdge", "True"): 7, ("HTTPSEdge", "False"): 1})
    metrics.watch_connections(lambda: {("Connection", "AuthenticationFailed"): 2})
    metrics.watch_leader(lambda: True)
    return metrics


def shown(metrics: Metrics) -> dict[str, float]:
    lines = [line for line in metrics.text().decode().splitlines() if line.startswith("edge_operator")]
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}


def test_the_names_are_the_documented_ones() -> None:
    names = {line.split("{")[0] for line in shown(full())}
    names -= {name for name in names if name.endswith(("_created", "_count", "_sum"))}
    assert set(NAMES.split()) == names


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('edge_operator_reconciles_total{kind="HTTPSEdge",outcome="InSync"}', 1),
        ('edge_operator_api_calls_total{collection="edges/https",method="POST",status="201"}', 1),
        ('edge_operator_cluster_requests_total{method="PATCH",resource="httpsedges/status",status="409"}', 1),
        ('edge_operator_cluster_writes_total{type="httpsedges/status"}', 1),
        ('edge_operator_queue_ready{priority="edit"}', 2),
        ("edge_operator_queue_running", 3),
        ("edge_operator_queue_scheduled", 4),
        ("edge_operator_queue_oldest_seconds", 5.5),
        ('edge_operator_resources{kind="HTTPSEdge",ready="True"}', 7),
        ('edge_operator_connections{kind="Connection",reason="AuthenticationFailed"}', 2),
        ("edge_operator_leader", 1),
        ('edge_operator_orphaned{kind="HTTPSEdge"}', 2),
        ('edge_operator_recoveries_total{kind="HTTPSEdge",outcome="adopted"}', 1),
    ],
)
def test_what_happened_is_counted(line: str, value: float) -> None:
    assert value == shown(full())[line]


def test_labels_have_a_bounded_number_of_values() -> None:
    metrics = Metrics()
    for number in range(10 * VALUES):
        metrics.called(f"made-up/{number}", "GET", 200, 0.1)
    lines = [line for line in shown(metrics) if line.startswith("edge_operator_api_calls_total")]
    assert VALUES + 1 == len(lines)
    assert 9 * VALUES == shown(metrics)['edge_operator_api_calls_total{collection="other",method="GET",status="200"}']


def test_the_process_is_measured_too() -> None:
    assert b"process_resident_memory_bytes" in Metrics().text()


async def test_probes_and_metrics_are_served() -> None:
    wrong = {"alive": "", "ready": "waiting for CRDs"}
    health = Health(
        "127.0.0.1:0", alive=lambda: wrong["alive"], ready=lambda: wrong["ready"], metrics_text=full().text
    )  # fmt: skip
    async with health, aiohttp.ClientSession(f"http://127.0.0.1:{health.port}") as session:

        async def ask(path: str) -> tuple[int, str]:
            async with session.get(path) as answer:
                return answer.status, await answer.text()

        assert (200, "ok\n") == await ask("/healthz")
        assert (503, "waiting for CRDs\n") == await ask("/readyz")
        wrong.update(alive="stuck", ready="")
        assert (503, "stuck\n") == await ask("/healthz")
        assert (200, "ok\n") == await ask("/readyz")
        code, text = await ask("/metrics")
        assert code == 200
        assert "edge_operator_leader 1.0" in text
        assert 404 == (await ask("/"))[0]
        async with session.get("/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")


async def test_an_address_that_is_taken_is_an_error_at_once() -> None:
    async with Health("127.0.0.1:0", alive=str, ready=str, metrics_text=bytes) as first:
        with pytest.raises(OSError, match="address already in use"):
            await Health(f"127.0.0.1:{first.port}", alive=str, ready=str, metrics_text=bytes).start()


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("[::1]:80", ("::1", 80)),
        (":9", ("", 9)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_addresses_are_read(listen: str, expected: tuple[str, int]) -> None:
    assert expected == address(listen)


@pytest.mark.parametrize("listen", ["8080", "localhost", "localhost:http", "::1:80", "a:99999", "", "a:-1"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match="should be HOST:PORT"):
        address(listen)
