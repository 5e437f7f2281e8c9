"""A real sshd serves an issued host certificate from its Secret, and a real ssh that trusts the authority logs in."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.running import World
from harness.processes import Process, free_port, wait_until

HOST = "edge-host.example.com"
GREETING = "the shell was reached"
SEPARATION = Path("/run/sshd")
"""Where root's sshd insists on an empty folder; packages leave it to their boot scripts."""


def tool(name: str) -> str:
    """The path of a program of OpenSSH; sshd has to be called by its whole path."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin")
    assert found, f"{name} is needed and not here: install OpenSSH (on Debian: apt-get install openssh-server)"
    return found


class Host:
    """A machine: an sshd on loopback with the key and the certificate of a Secret, and a user with a plain key."""

    def __init__(self, folder: Path, data: dict[str, str], *more: str) -> None:
        """`data` is a host certificate's Secret; `more` are further settings of sshd, which go before ours."""
        self.folder, self.port = folder, free_port()
        for name in ("ssh-host-key", "ssh-host-key-cert.pub", "ssh-host-key.pub"):
            path = folder / name
            path.touch(mode=0o600)
            path.write_text(data[name])
        subprocess.run(
            [tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", folder / "user"], check=True, timeout=30
        )
        settings = [
            *more,
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {folder / 'ssh-host-key'}",
            f"HostCertificate {folder / 'ssh-host-key-cert.pub'}",
            f"AuthorizedKeysFile {folder / 'user.pub'}",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
        ]
        (folder / "sshd_config").write_text("\n".join(settings) + "\n")

    @contextmanager
    def serving(self) -> Iterator[None]:
        """With sshd running."""
        if os.geteuid() == 0:
            SEPARATION.mkdir(mode=0o755, exist_ok=True)
        log = self.folder / "sshd.log"
        process = Process("sshd", [tool("sshd"), "-D", "-e", "-f", self.folder / "sshd_config"], log)
        try:
            wait_until(lambda: "Server listening" in log.read_text(), "sshd", 10, 0.02, log.read_text)
            yield
        finally:
            process.stop()

    def login(self, trusts: str, host: str = HOST, **more: Path) -> subprocess.CompletedProcess[str]:
        """A login by a client that knows nothing of this host but the authority that it trusts for `host`."""
        known = self.folder / "known_hosts"
        known.write_text(f"@cert-authority {HOST} {trusts}")
        options = {
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": known,
            "GlobalKnownHostsFile": "/dev/null",
            "HostKeyAlias": host,
            "IdentityFile": self.folder / "user",
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
            "ConnectTimeout": "10",
            **more,
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        where = ["-F", "/dev/null", "-p", str(self.port), f"{getpass.getuser()}@127.0.0.1"]
        return subprocess.run(
            [tool("ssh"), *words, *where, f"echo {GREETING}"],
            text=True, capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("authority", "key"),
    [
        ({"privateKeyType": "ed25519"}, {"algorithm": "ed25519"}),
        ({"privateKeyType": "ecdsa", "ellipticCurve": "p384"}, {"algorithm": "ecdsa", "size": 256}),
        ({"privateKeyType": "rsa", "keySize": 2048}, {"algorithm": "rsa", "size": 2048}),
    ],
    ids=["ed25519", "ecdsa", "rsa"],
)
def test_a_client_that_trusts_the_authority_logs_in_and_others_refuse_the_host(
    world: World, tmp_path: Path, authority: dict[str, Any], key: dict[str, Any]
) -> None:
    world.make("SSHCertificateAuthority", "fleet", authority)
    world.make("SSHCertificateAuthority", "other", authority)
    spec = {"authority": {"name": "fleet"}, "privateKey": key, "principals": [HOST], "validFor": "1h"}
    world.make("SSHHostCertificate", "web", spec)
    found = world.ready("SSHHostCertificate", "web")
    data = world.data(found["status"]["secretName"])
    assert data is not None
    other = world.ready("SSHCertificateAuthority", "other")["status"]["publicKey"]
    host = Host(tmp_path, data)

    with host.serving():
        login = host.login(trusts=data["ca.pub"])
        stranger = host.login(trusts=other)
        elsewhere = host.login(trusts=data["ca.pub"], host="another.example.com")

    assert login.stdout == f"{GREETING}\n", login.stderr
    assert (stranger.returncode, stranger.stdout) == (255, "")
    assert "Host key verification failed" in stranger.stderr
    assert (elsewhere.returncode, elsewhere.stdout) == (255, "")
    assert "Host key verification failed" in elsewhere.stderr


def test_a_host_that_brings_its_own_key_gets_a_certificate_that_a_client_accepts(world: World, tmp_path: Path) -> None:
    """The private key is never in the cluster: only its public half is signed."""
    own = tmp_path / "own"
    subprocess.run([tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", own], check=True, timeout=30)
    world.secret("host", key=own.with_suffix(".pub").read_text())
    world.make("SSHCertificateAuthority", "fleet", {})
    public = {"secretKeyRef": {"name": "host", "key": "key"}}
    spec = {"authority": {"name": "fleet"}, "publicKey": public, "principals": [HOST]}
    world.make("SSHHostCertificate", "web", spec)
    found = world.ready("SSHHostCertificate", "web")
    data = world.data(found["status"]["secretName"])
    assert data is not None
    assert "ssh-host-key" not in data
    host = Host(tmp_path, {**data, "ssh-host-key": own.read_text()})

    with host.serving():
        login = host.login(trusts=data["ca.pub"])

    assert login.stdout == f"{GREETING}\n", login.stderr


def test_a_host_lets_in_who_has_an_issued_user_certificate_and_nobody_else(world: World, tmp_path: Path) -> None:
    """No key of a user is on the host: it trusts the authority of the people."""
    world.make("SSHCertificateAuthority", "fleet", {})
    world.make("SSHCertificateAuthority", "people", {})
    key = {"algorithm": "ed25519"}
    web = {"authority": {"name": "fleet"}, "privateKey": key, "principals": [HOST]}
    me = {"authority": {"name": "people"}, "privateKey": key, "principals": [getpass.getuser()]}
    world.make("SSHHostCertificate", "web", web)
    world.make("SSHUserCertificate", "me", me)
    world.make("SSHUserCertificate", "other", {**me, "principals": ["somebody-else"]})
    world.make("SSHUserCertificate", "stranger", {**me, "authority": {"name": "fleet"}})
    data = world.data(world.ready("SSHHostCertificate", "web")["status"]["secretName"])
    assert data is not None
    people = tmp_path / "people.pub"
    people.write_text(world.ready("SSHCertificateAuthority", "people")["status"]["publicKey"])
    host = Host(tmp_path, data, f"TrustedUserCAKeys {people}", "AuthorizedKeysFile none")

    with host.serving():
        logins = {name: login_as(world, host, name, trusts=data["ca.pub"]) for name in ("me", "other", "stranger")}

    assert logins["me"].stdout == f"{GREETING}\n", logins["me"].stderr
    for name in ("other", "stranger"):
        assert (logins[name].returncode, logins[name].stdout) == (255, "")
        assert "Permission denied" in logins[name].stderr


def login_as(world: World, host: Host, name: str, trusts: str) -> subprocess.CompletedProcess[str]:
    """A login with the key and the certificate of a user certificate's Secret."""
    data = world.data(world.ready("SSHUserCertificate", name)["status"]["secretName"])
    assert data is not None
    key, certificate = host.folder / name, host.folder / f"{name}-cert"
    for path, text in ((key, data["ssh-privatekey"]), (certificate, data["ssh-certificate"])):
        path.touch(mode=0o600)
        path.write_text(text)
    return host.login(trusts, IdentityFile=key, CertificateFile=certificate)
