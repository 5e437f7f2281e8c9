"""The world that tests, the demo and the benchmark run in: a real control plane and what stands around it.

Here live the parts that are started or stood in for: the control plane (`control_plane`), where its binaries come
from (`binaries`), access to any cluster (`cluster`), the audit log (`audit`) and a kubelet that runs pods as local
processes (`kubelet`, `pods`, `probes`). Nothing here knows the operator beyond the name of its command, and nothing
here asserts: tests do that. A part that is missing is an error that says how to get it.
"""
