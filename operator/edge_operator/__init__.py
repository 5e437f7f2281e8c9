"""edge-operator: a Kubernetes operator for the management API of a public-ingress and tunneling platform.

The rooms, each with one verb: `api` speaks to the service, `declare` and `kinds` say what exists, `engine` decides,
`reconcile` is the line, `remote` and `kube` do, `server` answers as the service would, `derive` writes down.
Read `reconcile.py` first.
"""

from importlib.metadata import version

__version__ = version("edge-operator")
