"""The parts of a control plane: the files and the flags that each is started with."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from harness import audit, binaries
from harness.processes import free_port

CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
)
"""What charts and owner references need; nothing that needs a cloud, a network or a scheduler."""


@dataclass(frozen=True)
class Layout:
    """Where one control plane keeps its files and listens."""

    folder: Path
    client_port: int = field(default_factory=free_port)
    peer_port: int = field(default_factory=free_port)
    secure_port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.secure_port}"

    @property
    def certificate(self) -> Path:
        """The certificate that the API server makes for itself; its file has the authority too."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def manager_kubeconfig(self) -> Path:
        """The controller manager's kubeconfig."""
        return self.folder / "controller-manager.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """The audit log, a JSON document a line."""
        return self.folder / "audit.jsonl"

    def log(self, part: str) -> Path:
        """What a part prints."""
        return self.folder / f"{part}.log"

    def command(self, part: str) -> list[str]:
        """The command line of a part."""
        flags = {"etcd": _etcd, "kube-apiserver": _apiserver, "kube-controller-manager": _controller_manager}[part](
            self
        )
        return [str(binaries.find(part)), *(f"--{flag}={value}" for flag, value in flags.items())]


@dataclass(frozen=True)
class Tokens:
    """The two users that exist before any service account; both may do everything."""

    admin: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    manager: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)


def write_files(folder: Path, tokens: Tokens) -> None:
    """Write the service accounts' signing key, the users' tokens and the audit policy."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    users = (
        f"{tokens.admin},admin,admin,system:masters\n"
        f"{tokens.manager},system:kube-controller-manager,controller-manager,system:masters\n"
    )
    policy = yaml.safe_dump(audit.POLICY)
    for name, text in {"service-accounts.key": pem, "tokens.csv": users, "audit-policy.yaml": policy}.items():
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(text)


def _etcd(layout: Layout) -> dict[str, object]:
    clients, peers = f"http://127.0.0.1:{layout.client_port}", f"http://127.0.0.1:{layout.peer_port}"
    return {
        "data-dir": layout.folder / "etcd",
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"default={peers}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def _apiserver(layout: Layout) -> dict[str, object]:
    key = layout.folder / "service-accounts.key"
    return {
        "etcd-servers": f"http://127.0.0.1:{layout.client_port}",
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "secure-port": layout.secure_port,
        "cert-dir": layout.certificate.parent,
        "token-auth-file": layout.folder / "tokens.csv",
        "authorization-mode": "RBAC",
        "anonymous-auth": "false",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "service-cluster-ip-range": "10.0.0.0/24",
        "endpoint-reconciler-type": "none",
        "allow-privileged": "true",
        "profiling": "false",
        "audit-policy-file": layout.folder / "audit-policy.yaml",
        "audit-log-path": layout.audit_log,
        "audit-log-maxsize": 4096,
    }


def _controller_manager(layout: Layout) -> dict[str, object]:
    return {
        "kubeconfig": layout.manager_kubeconfig,
        "service-account-private-key-file": layout.folder / "service-accounts.key",
        "root-ca-file": layout.certificate,
        "controllers": ",".join(CONTROLLERS),
        "leader-elect": "false",
        "secure-port": 0,
        "profiling": "false",
        "kube-api-qps": 200,
        "kube-api-burst": 400,
    }
