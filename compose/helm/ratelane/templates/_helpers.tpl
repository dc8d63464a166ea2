{{/* At most 40 characters, so that the longest suffix still fits into a name of 63. */}}
{{- define "ratelane.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name }}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) }}
{{- .Values.fullnameOverride | default $name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "ratelane.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{/* Labels and tags cannot have the + of a version. */}}
{{- define "ratelane.version" -}}
{{- . | replace "+" "_" | trunc 63 | trimAll "-_." }}
{{- end }}

{{- define "ratelane.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" (include "ratelane.name" .)
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" (include "ratelane.version" .Chart.AppVersion)
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (include "ratelane.version" (printf "%s-%s" .Chart.Name .Chart.Version)) }}
{{- toYaml (merge $own .Values.commonLabels) }}
{{- end }}

{{/* Manifests, between lines of ---, with what the values of their program set for them: (list manifests values). Maps are
merged, lists are replaced. */}}
{{- define "ratelane.changed" -}}
{{- $values := last . }}
{{- range $text := splitList "\n---\n" (first .) }}
{{- $manifest := fromYaml $text }}
{{- with $manifest.Error }}{{ fail . }}{{ end }}
{{- $changes := get $values.manifests (get (dict
  "Deployment" "deployment"
  "Service" "service"
  "PodDisruptionBudget" "disruptionBudget"
  "HorizontalPodAutoscaler" "autoscaler") $manifest.kind) }}
{{- $_ := mergeOverwrite $manifest (deepCopy ($changes | default dict)) }}
{{- /* Fields that exclude each other: the one of the values counts. */}}
{{- $given := dig "spec" dict ($changes | default dict) }}
{{- if hasKey $given "minAvailable" }}{{ $_ = unset $manifest.spec "maxUnavailable" }}{{ end }}
{{- if and (has (get $given "type") (list "NodePort" "LoadBalancer")) (not (hasKey $given "clusterIP")) }}{{ $_ = unset $manifest.spec "clusterIP" }}{{ end }}
{{- if eq $manifest.kind "Deployment" }}
{{- if eq (dig "spec" "strategy" "type" "" $manifest) "Recreate" }}{{ $_ = unset $manifest.spec.strategy "rollingUpdate" }}{{ end }}
{{- $pod := mergeOverwrite $manifest.spec.template.spec (deepCopy $values.manifests.pod) }}
{{- $container := mergeOverwrite (first $pod.containers) (deepCopy $values.manifests.container) }}
{{- $_ = set $pod "containers" (concat (list $container) $values.extraContainers) }}
{{- with concat ($pod.initContainers | default list) $values.extraInitContainers }}{{ $_ = set $pod "initContainers" . }}{{ end }}
{{- end }}
---
{{ toYaml $manifest }}
{{ end }}
{{- end }}

{{/* Checks rules of the values before a program starts with them. */}}
{{- define "ratelane.rulesCheck" -}}
- name: rules
  {{- include "ratelane.image" . | nindent 2 }}
  args: [control-plane, check, /rules]
  resources: { requests: { cpu: 50m, memory: 96Mi }, limits: { memory: 512Mi } }
  volumeMounts:
    - { name: rules, mountPath: /rules, readOnly: true }
{{- end }}

{{- define "ratelane.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Of one of the programs: (list . "worker"). */}}
{{- define "ratelane.selector" -}}
app.kubernetes.io/name: {{ include "ratelane.name" (first .) | quote }}
app.kubernetes.io/instance: {{ (first .).Release.Name | quote }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{/* Of the control planes among themselves: the name of their headless Service, and of the Secret that is made. */}}
{{- define "ratelane.peers" -}}
{{- include "ratelane.fullname" . }}-control-plane-peers
{{- end }}

{{/* The ConfigMap of the record. Control planes make it, and it outlives the release. */}}
{{- define "ratelane.record" -}}
{{- include "ratelane.fullname" . }}-record
{{- end }}

{{/* The address at which control planes ask each other, also for commands that run in pods. */}}
{{- define "ratelane.adminUrl" -}}
{{ ternary "http" "https" (empty .Values.controlPlane.adminTlsSecret) }}://{{ include "ratelane.peers" . }}.{{ include "ratelane.namespace" . }}.svc:18001
{{- end }}

{{/* Where callers reach the workers: their Service is headless, so the port is the program's own. */}}
{{- define "ratelane.workerAddress" -}}
{{ include "ratelane.fullname" . }}-worker.{{ include "ratelane.namespace" . }}.svc:{{ .Values.worker.settings.GRPC_PORT | default 8081 }}
{{- end }}

{{/* Whether the admin port asks callers for a certificate: "true" or nothing. They show its own. */}}
{{- define "ratelane.adminAsksClients" -}}
{{- if .Values.controlPlane.settings.RATELANE_ADMIN_TLS_CLIENT_CA }}true{{ end }}
{{- end }}

{{- define "ratelane.peersToken" -}}
{{- .Values.controlPlane.peersTokenSecret | default (include "ratelane.peers" .) }}
{{- end }}

{{/* Whether the repository is reached by ssh: "true" or nothing. */}}
{{- define "ratelane.gitOverSsh" -}}
{{- if regexMatch "^(ssh://|[^/:]+:([^/]|/[^/]))" .Values.controlPlane.git.url }}true{{ end }}
{{- end }}

{{/* Where users reach the console: the address in the values, else the ingress, if the console is let in. */}}
{{- define "ratelane.publicUrl" -}}
{{- $ingress := .Values.controlPlane.ingress }}
{{- $host := first $ingress.hosts | default "*" }}
{{- $isOpen := or (has "/" $ingress.paths) (has "/console" $ingress.paths) (has "/console/" $ingress.paths) }}
{{- if .Values.controlPlane.publicUrl }}
{{- .Values.controlPlane.publicUrl | trimSuffix "/" }}
{{- else if and $ingress.enabled $isOpen (not (hasPrefix "*" $host)) }}
{{- ternary "https" "http" (ne $ingress.tlsSecret "") }}://{{ $host }}
{{- end }}
{{- end }}

{{- define "ratelane.metricsPath" -}}
{{- coalesce .Values.worker.settings.PULLMETRICS_PATH .Values.worker.settings.PROMETHEUS_PATH "/metrics" }}
{{- end }}

{{- define "ratelane.image" -}}
{{- $version := printf ":%s" (.Values.image.tag | default (include "ratelane.version" .Chart.AppVersion)) }}
{{- with .Values.image.digest }}{{ $version = printf "@%s" . }}{{ end }}
image: {{ printf "%s%s" .Values.image.repository $version | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Whether the record is in a ConfigMap of Kubernetes: "true" or nothing. */}}
{{- define "ratelane.recordInKubernetes" -}}
{{- with .Values.controlPlane }}
{{- if and .enabled (eq .record "kubernetes") (not (hasKey .settings "RATELANE_RECORD")) }}true{{ end }}
{{- end }}
{{- end }}

{{/* The ServiceAccount of the pods of a program, or nothing: (list . "worker"). */}}
{{- define "ratelane.account" -}}
{{- $name := include "ratelane.fullname" (first .) }}
{{- with (first .).Values.serviceAccount }}
{{- if or .create .name }}
{{- .name | default $name }}
{{- else if and (eq (last $) "control-plane") (include "ratelane.recordInKubernetes" (first $)) }}
{{- $name }}-control-plane
{{- end }}
{{- end }}
{{- end }}

{{/* What all pods have: (list . "worker"). Only control planes with a record in Kubernetes have a token for it. */}}
{{- define "ratelane.pod" -}}
automountServiceAccountToken: {{ and (eq (last .) "control-plane") (ne (include "ratelane.recordInKubernetes" (first .)) "") }}
{{- with include "ratelane.account" . }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with first . }}
securityContext:
  {{- with .Values.podSecurityContext }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
  {{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The chart's labels, and those of the values: (list . "worker" values). */}}
{{- define "ratelane.podLabels" -}}
{{- $own := merge (dict "app.kubernetes.io/component" (index . 1)) (include "ratelane.labels" (first .) | fromYaml) }}
{{- toYaml (merge $own (last .).podLabels) }}
{{- end }}

{{/* Where pods go: (list . "worker" values). Spread over zones and machines where that can be had. */}}
{{- define "ratelane.placement" -}}
{{- with (last .).priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with (last .).nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with (last .).tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with (last .).affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- with (last .).topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "ratelane.selector" (list (first $) (index $ 1)) | nindent 8 }}
  {{- end }}
  {{- end }}
{{- end }}

{{/* Variables from the chart's own and the user's, of whom the user wins: (list own theirs). Numbers of a
values file are float64, which toString prints as 1e+06 from a million on; toJson prints them in full. */}}
{{- define "ratelane.environment" -}}
{{- range $name, $value := mergeOverwrite (dict) (first .) (last .) }}
- name: {{ $name | quote }}
  value: {{ ternary (toJson $value) (toString $value) (kindIs "float64" $value) | quote }}
{{- end }}
{{- end }}
