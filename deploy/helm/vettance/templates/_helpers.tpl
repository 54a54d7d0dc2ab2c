{{- define "vettance.labels" -}}
app.kubernetes.io/name: vettance
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "vettance.selector" -}}
app.kubernetes.io/name: vettance
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
