{{- /* derived from operator/edge_operator/derive/access.py, operator/edge_operator/kinds by `make derive`; do not edit */ -}}
{{- define "edge-operator.rules.watched" -}}
- apiGroups:
  - edge-operator.dev
  resources:
  - agentingresses
  - apikeys
  - connections
  - eventdestinations
  - failoverbackends
  - httpsedges
  - httpsroutes
  - sshcertificateauthorities
  - sshhostcertificates
  - sshusercertificates
  - tcpedges
  - tlscertificates
  - tlsedges
  - tunnelcredentials
  - weightedbackends
  verbs:
  - get
  - list
  - watch
  - patch
- apiGroups:
  - edge-operator.dev
  resources:
  - tunnelsessioncommands
  verbs:
  - get
  - list
  - watch
  - delete
- apiGroups:
  - edge-operator.dev
  resources:
  - agentingresses/status
  - apikeys/status
  - connections/status
  - eventdestinations/status
  - failoverbackends/status
  - httpsedges/status
  - httpsroutes/status
  - sshcertificateauthorities/status
  - sshhostcertificates/status
  - sshusercertificates/status
  - tcpedges/status
  - tlscertificates/status
  - tlsedges/status
  - tunnelcredentials/status
  - tunnelsessioncommands/status
  - weightedbackends/status
  verbs:
  - patch
- apiGroups:
  - ''
  resources:
  - secrets
  verbs:
  - get
  - list
  - watch
  - create
  - patch
- apiGroups:
  - ''
  resources:
  - events
  verbs:
  - create
  - patch
{{- end }}

{{- define "edge-operator.rules.cluster" -}}
- apiGroups:
  - edge-operator.dev
  resources:
  - clusterconnections
  verbs:
  - get
  - list
  - watch
  - patch
- apiGroups:
  - edge-operator.dev
  resources:
  - clusterconnections/status
  verbs:
  - patch
{{- end }}

{{- define "edge-operator.rules.identity" -}}
- apiGroups:
  - ''
  resources:
  - namespaces
  verbs:
  - get
  resourceNames:
  - kube-system
{{- end }}

{{- define "edge-operator.rules.definitions" -}}
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  verbs:
  - get
  resourceNames:
  - agentingresses.edge-operator.dev
  - apikeys.edge-operator.dev
  - eventdestinations.edge-operator.dev
  - failoverbackends.edge-operator.dev
  - httpsedges.edge-operator.dev
  - httpsroutes.edge-operator.dev
  - sshcertificateauthorities.edge-operator.dev
  - sshhostcertificates.edge-operator.dev
  - sshusercertificates.edge-operator.dev
  - tcpedges.edge-operator.dev
  - tlscertificates.edge-operator.dev
  - tlsedges.edge-operator.dev
  - tunnelcredentials.edge-operator.dev
  - weightedbackends.edge-operator.dev
{{- end }}

{{- define "edge-operator.rules.own" -}}
- apiGroups:
  - edge-operator.dev
  resources:
  - tunnelsessions
  verbs:
  - get
  - list
  - create
  - delete
- apiGroups:
  - edge-operator.dev
  resources:
  - tunnelsessions/status
  verbs:
  - patch
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - create
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - get
  - update
  resourceNames:
  - edge-operator
- apiGroups:
  - ''
  resources:
  - secrets
  verbs:
  - create
- apiGroups:
  - ''
  resources:
  - secrets
  verbs:
  - get
  - patch
  resourceNames:
  - edge-operator-digest-key
{{- end }}

{{- define "edge-operator.rules.drain" -}}
- apiGroups:
  - edge-operator.dev
  resources:
  - agentingresses
  - apikeys
  - clusterconnections
  - connections
  - eventdestinations
  - failoverbackends
  - httpsedges
  - httpsroutes
  - sshcertificateauthorities
  - sshhostcertificates
  - sshusercertificates
  - tcpedges
  - tlscertificates
  - tlsedges
  - tunnelcredentials
  - weightedbackends
  verbs:
  - get
  - list
  - delete
{{- end }}

{{- define "edge-operator.rules.view" -}}
- apiGroups:
  - edge-operator.dev
  resources:
  - agentingresses
  - apikeys
  - clusterconnections
  - connections
  - eventdestinations
  - failoverbackends
  - httpsedges
  - httpsroutes
  - sshcertificateauthorities
  - sshhostcertificates
  - sshusercertificates
  - tcpedges
  - tlscertificates
  - tlsedges
  - tunnelcredentials
  - tunnelsessioncommands
  - tunnelsessions
  - weightedbackends
  verbs:
  - get
  - list
  - watch
{{- end }}

{{- define "edge-operator.rules.edit" -}}
- apiGroups:
  - edge-operator.dev
  resources:
  - agentingresses
  - apikeys
  - clusterconnections
  - connections
  - eventdestinations
  - failoverbackends
  - httpsedges
  - httpsroutes
  - sshcertificateauthorities
  - sshhostcertificates
  - sshusercertificates
  - tcpedges
  - tlscertificates
  - tlsedges
  - tunnelcredentials
  - tunnelsessioncommands
  - weightedbackends
  verbs:
  - get
  - list
  - watch
  - create
  - delete
  - deletecollection
  - patch
  - update
{{- end }}
