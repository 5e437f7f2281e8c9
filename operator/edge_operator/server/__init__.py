"""Answers: the reference management API, a small and faithful stand-in for the service that the API document describes.

`operations` lists what can be called, derived from `api.catalog`; `app` takes one request through the checks that all
share; `service` carries out an operation in one transaction; `rules` says, per resource, what the document refuses and
fills in; `store` keeps JSON documents in SQLite; `problems` holds every refusal. `signing` and `chains` are the real
cryptography of SSH and TLS certificates. `faults`, `journal` and `control` are for tests.
Nothing here knows of Kubernetes or of the client; the shapes of requests and answers are those of `edge_operator.api`.
"""
