"""Speaks the management API: shapes of every request and answer, the catalog of collections, the async client.

Usable alone: nothing here knows of Kubernetes, and nothing else of this package is imported.
Shapes stand by topic (`access`, `agents`, `ssh`, `tls`, `backends`, `modules`, `edges`, `events`); `catalog` has one
entry for each collection; `profiles` spells names as a service does.
`client` is the way in: `operations` of each collection over one `caller`, which asks `retry` and does one `exchange`
at a time; `address` says where to, `errors` what can go wrong, `redaction` what no message holds.
Single-field limits of the document are part of a shape; rules over several fields or over state are the service's.
"""
