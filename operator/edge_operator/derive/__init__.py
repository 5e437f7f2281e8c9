"""Writes down what follows from the declarations, and compares it with what is committed.

`structural` turns a spec into a schema that the API server takes, `status` says what a status holds, `crd` puts both
into a manifest. `access` is the RBAC a running operator needs, `health` the script that tells Argo CD how a resource
is, `samples`, `reference` (with its `rows`) and `commands` are for readers, `chart` is what Helm reads, `files` lists
every derived file, and `__main__` writes or checks them. Nothing here is part of a running operator, and nothing here
decides anything: what is true of a kind stands in its declaration.
"""
