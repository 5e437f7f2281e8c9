"""Fixtures of the tests on a real API server.

Each pytest-xdist worker has a control plane of its own: its tests run one after the other, so that what belongs to the
whole cluster (CRDs, cluster roles, a restart of the API server) cannot come in another test's way.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.judge import Judge
from cluster.running import Installation, Operator, Service, World, clear
from harness import binaries
from harness.cluster import Cluster
from harness.control_plane import open_cluster
from harness.helm import Helm
from harness.kubelet import FakeKubelet

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("cluster")


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster for all tests of this worker: our own control plane, or what EDGE_OPERATOR_TEST_KUBECONFIG names."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # a first build takes minutes, and says how far it is
        binaries.folder(binaries.CONTROL_PLANE)
        binaries.folder(binaries.HELM)
    with open_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def crds(control_plane: Cluster) -> Cluster:
    """The same cluster, with the CRDs of this project in it."""
    control_plane.apply_crds(ROOT / "crds")
    return control_plane


@pytest.fixture(scope="session")
def judge(crds: Cluster) -> Iterator[Judge]:
    """A watch over all that the operator writes into statuses, for all tests of this worker."""
    with Judge(crds) as found:
        yield found


@pytest.fixture(autouse=True)
def legal_statuses(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that has the operator running fails where a status that it wrote, if only for a moment, breaks a rule."""
    if "installation" not in request.fixturenames and "release" not in request.fixturenames:
        yield
        return
    judge: Judge = request.getfixturevalue("judge")
    known = len(judge.found)
    yield
    assert judge.found[known:] == []


@pytest.fixture
def namespace(control_plane: Cluster) -> Iterator[str]:
    """The name of a fresh namespace, which is deleted afterwards with all that is in it."""
    name = f"test-{secrets.token_hex(4)}"
    control_plane.create_namespace(name)
    yield name
    control_plane.clear_namespace(name)


@pytest.fixture
def kubelet(control_plane: Cluster, namespace: str) -> Iterator[FakeKubelet]:
    """A kubelet that runs the pods of the test's namespace as local processes; their output is shown on a failure."""
    with FakeKubelet(control_plane, namespace) as running:
        yield running
        print(running.logs())


@pytest.fixture(scope="session")
def helm(control_plane: Cluster) -> Helm:
    """The real helm, as the cluster's administrator."""
    return Helm(control_plane)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The reference API as a process."""
    with Service(tmp_path_factory.mktemp("service")) as found:
        found.start()
        yield found


@pytest.fixture(scope="module")
def installation(crds: Cluster) -> Iterator[Installation]:
    """A service account in a namespace of its own, with the chart's rights in the whole cluster."""
    name = f"operator-{secrets.token_hex(4)}"
    crds.create_namespace(name)
    found = Installation(crds, name)
    yield found
    found.remove()
    crds.clear_namespace(name)


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory, service: Service) -> Path:
    """The file with the operator's API key."""
    file = tmp_path_factory.mktemp("key") / "api-key"
    file.write_text(service.operator_key)
    return file


@pytest.fixture(scope="module")
def operator(
    installation: Installation, service: Service, key_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """One replica that leads, for all tests of a module; it is asked to end at the end, and has to end well."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with Operator(installation, service.url, key_file, log) as found:
        found.lead()
        yield found
        code, _ = found.stop()
        assert code == 0, found.text()


@pytest.fixture
def world(crds: Cluster, service: Service, operator: Operator, namespace: str) -> Iterator[World]:
    """A fresh namespace under a running operator. Afterwards all in it goes, and leaves nothing in the account."""
    found = World(crds, service, namespace)
    yield found
    clear(found)
    assert found.left() == []
