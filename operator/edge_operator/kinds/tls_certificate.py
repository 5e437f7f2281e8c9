"""TLSCertificate uploads the certificate that a kubernetes.io/tls Secret holds, and follows the Secret."""

from __future__ import annotations

from typing import Annotated

from edge_operator.api import catalog
from edge_operator.declare import Column, Kind, Reissues, TLSSecretRef, Uploaded
from edge_operator.policies import Described


class Spec(Described):
    """A TLS certificate from a Secret, for example one that cert-manager keeps."""

    secret_ref: Annotated[TLSSecretRef, Reissues()]
    """The Secret of the type kubernetes.io/tls: tls.crt with the chain, leaf first, and tls.key."""


KIND = Kind(
    name="TLSCertificate",
    spec=Spec,
    api=catalog.tls_certificates,
    short=("tlsc",),
    columns=(Column("Subject", ".status.subjectCommonName"), Column("Not-After", ".status.notAfter")),
    lifecycle=Uploaded(),
    example="""
    description: the shop's certificate
    secretRef: {name: example-tls}
    """,
    needs="""
    apiVersion: v1
    kind: Secret
    metadata: {name: example-tls}
    type: kubernetes.io/tls
    stringData:
      tls.crt: |
        -----BEGIN CERTIFICATE-----
        MIIBeTCCASCgAwIBAgICEJIwCgYIKoZIzj0EAwIwFTETMBEGA1UEAwwKRXhhbXBs
        ZSBDQTAgFw0yNTAxMDEwMDAwMDBaGA8yMTI1MDEwMTAwMDAwMFowGzEZMBcGA1UE
        AwwQc2hvcC5leGFtcGxlLmNvbTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPra
        pYGYLD6jba2xQJhyJpPAkWcirZPACrDHM/NbuGq/CpDvGMK9vGuU1fZzoLLeVVYI
        aERmiNuqVWuiVAVTptCjWDBWMC8GA1UdEQQoMCaCEHNob3AuZXhhbXBsZS5jb22C
        Eiouc2hvcC5leGFtcGxlLmNvbTAOBgNVHQ8BAf8EBAMCB4AwEwYDVR0lBAwwCgYI
        KwYBBQUHAwEwCgYIKoZIzj0EAwIDRwAwRAIgV25/DY5jvCtDTULcumKUH4MhsxVH
        qlV+X5OzLBf4KNsCIBxKvhnTGfnFGx1F3d9b64QQCK+v0XNeNpk2Owml86d0
        -----END CERTIFICATE-----
      tls.key: |
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgBgzOJw+2JrX7fooe
        G2bz9LQCU1egqcj/yH5C3vK6nBShRANCAAT62qWBmCw+o22tsUCYciaTwJFnIq2T
        wAqwxzPzW7hqvwqQ7xjCvbxrlNX2c6Cy3lVWCGhEZojbqlVrolQFU6bQ
        -----END PRIVATE KEY-----
    """,
)
