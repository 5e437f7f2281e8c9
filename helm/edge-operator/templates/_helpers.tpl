{{- define "edge-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "edge-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 49 | trimSuffix "-" }}
{{- else -}}
{{- $name := include "edge-operator.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 49 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "edge-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: edge-operator
{{ include "edge-operator.selector" . }}
{{- end }}

{{- define "edge-operator.selector" -}}
app.kubernetes.io/name: {{ include "edge-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "edge-operator.image" -}}
{{- with .Values.image -}}
{{- if .registry }}{{ .registry }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{- define "edge-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "edge-operator.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{- default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "edge-operator.referenceAPI" -}}
{{- include "edge-operator.fullname" . }}-reference-api
{{- end }}

{{- define "edge-operator.apiURL" -}}
{{- if .Values.api.url -}}
{{- .Values.api.url }}
{{- else if .Values.referenceAPI.enabled -}}
http://{{ include "edge-operator.referenceAPI" . }}.{{ .Release.Namespace }}.svc:{{ .Values.referenceAPI.port }}
{{- else -}}
{{- fail "api.url is missing: set it to the base address of the management API, or set referenceAPI.enabled=true to try the operator out" }}
{{- end -}}
{{- end }}

{{- define "edge-operator.keySecret" -}}
{{- if .Values.api.keySecret.name -}}
{{- .Values.api.keySecret.name }}
{{- else if .Values.referenceAPI.enabled -}}
{{- include "edge-operator.referenceAPI" . }}
{{- else -}}
{{- fail "api.keySecret.name is missing: set it to the Secret that holds the API key, or set referenceAPI.enabled=true to try the operator out" }}
{{- end -}}
{{- end }}

{{- define "edge-operator.keySecretKey" -}}
{{- ternary .Values.api.keySecret.key "api-key" (ne .Values.api.keySecret.name "") }}
{{- end }}
