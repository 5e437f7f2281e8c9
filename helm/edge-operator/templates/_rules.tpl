{{- /* derived from operator/edge_operator/derive/access.py, operator/edge_operator/kinds by `make derive`; do not edit */ -}}
{{- define "edge-operator.rules.watched" -}}
- apiGroups:
  - edge-operator.dev
  resources:
  - eventdestinations
  - failoverbackends
  - httpsedges
  - httpsroutes
  - sshcertificateauthorities
  - sshhostcertificates
  - tlsedges
  - weightedbackends
  verbs:
  - get
  - list
  - watch
  - patch
- apiGroups:
  - edge-operator.dev
  resources:
  - eventdestinations/status
  - failoverbackends/status
  - httpsedges/status
  - httpsroutes/status
  - sshcertificateauthorities/status
  - sshhostcertificates/status
  - tlsedges/status
  - weightedbackends/status
  verbs:
  - get
  - patch
- apiGroups:
  - edge-operator.dev
  resources:
  - eventdestinations/finalizers
  - failoverbackends/finalizers
  - httpsedges/finalizers
  - httpsroutes/finalizers
  - sshcertificateauthorities/finalizers
  - sshhostcertificates/finalizers
  - tlsedges/finalizers
  - weightedbackends/finalizers
  verbs:
  - update
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
- apiGroups:
  - events.k8s.io
  resources:
  - events
  verbs:
  - create
  - patch
- apiGroups:
  - ''
  resources:
  - namespaces
  verbs:
  - get
{{- end }}

{{- define "edge-operator.rules.cluster" -}}
- apiGroups:
  - ''
  resources:
  - namespaces
  verbs:
  - list
  - watch
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  verbs:
  - get
  - list
  - watch
{{- end }}

{{- define "edge-operator.rules.own" -}}
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
  - patch
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
  resourceNames:
  - edge-operator-digests
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

{{- define "edge-operator.rules.view" -}}
- apiGroups:
  - edge-operator.dev
  resources:
  - eventdestinations
  - failoverbackends
  - httpsedges
  - httpsroutes
  - sshcertificateauthorities
  - sshhostcertificates
  - tlsedges
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
  - eventdestinations
  - failoverbackends
  - httpsedges
  - httpsroutes
  - sshcertificateauthorities
  - sshhostcertificates
  - tlsedges
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
