"""Does, in the cluster: the only code that imports kopf or the Kubernetes client.

`operator` puts it together; `watching` takes events from kopf, `controller` takes resources down the line through
`queue`, `cluster` and `secrets` write, `index` remembers who points at whom, `drift` looks for changes made elsewhere,
`lease` says who acts. Nothing here decides what becomes of a resource: that is the engine's.
"""
