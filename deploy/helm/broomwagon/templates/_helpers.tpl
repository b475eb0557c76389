{{- define "broomwagon.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* What distinguishes the pods of one part of this release. Argument: list ROOT COMPONENT. */}}
{{- define "broomwagon.selector" -}}
{{- $root := first . -}}
app.kubernetes.io/name: broomwagon
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{- define "broomwagon.labels" -}}
{{- $root := first . -}}
{{ include "broomwagon.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- with $root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Labels of the pods of NATS and Redis, without the version: an upgrade alone does not restart a server. Argument: list
ROOT COMPONENT.
*/}}
{{- define "broomwagon.podLabels" -}}
{{- $root := first . -}}
{{ include "broomwagon.selector" . }}
{{- with $root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A JSON list of the services that are on: their values over the defaults, with `key`, `name` and `fullname`. */}}
{{- define "broomwagon.apps" -}}
{{- $apps := list }}
{{- range $key := list "loadBalancer" "trainerCoordinator" "worker" "gateway" "adminApi" }}
  {{- $app := mergeOverwrite (deepCopy $.Values.defaults) (index $.Values $key) }}
  {{- if $app.enabled }}
    {{- $name := kebabcase $key }}
    {{- $fullname := printf "%s-%s" (include "broomwagon.fullname" $) $name }}
    {{- $apps = append $apps (mergeOverwrite $app (dict "key" $key "name" $name "fullname" $fullname)) }}
  {{- end }}
{{- end }}
{{- toJson $apps }}
{{- end }}

{{- define "broomwagon.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* Of the image of the services, NATS and Redis. */}}
{{- define "broomwagon.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Required by the Pod Security level "restricted". Argument: the number of the user; none: the platform chooses it. */}}
{{- define "broomwagon.podSecurity" -}}
runAsNonRoot: true
{{- if . }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
fsGroup: {{ int64 . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "broomwagon.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* The settings of one service as JSON: those of the chart, then `settings`, then those of the service. */}}
{{- define "broomwagon.settings" -}}
{{- $root := first . }}
{{- $app := last . }}
{{- $fullname := include "broomwagon.fullname" $root }}
{{- $settings := dict "LOG_FORMAT" "json" "HTTP_HOST" "0.0.0.0" }}
{{- if $app.tlsSecret }}
  {{- $_ := set $settings "HTTP_TLS_CERT" "/etc/broomwagon/http/tls.crt" }}
  {{- $_ := set $settings "HTTP_TLS_KEY" "/etc/broomwagon/http/tls.key" }}
{{- end }}
{{- with $root.Values.nats }}
  {{- $scheme := ternary "tls" "nats" (ne .tlsSecret "") }}
  {{- $own := printf "%s://%s-nats:4222" $scheme $fullname }}
  {{- if or .enabled .url }}{{ $_ := set $settings "NATS_URL" (ternary $own .url .enabled) }}{{ end }}
  {{- if and .enabled (gt (int .replicas) 1) }}{{ $_ := set $settings "NATS_STREAM_REPLICAS" 3 }}{{ end }}
{{- end }}
{{- with $root.Values.redis }}
  {{- if and .url (not .enabled) }}{{ $_ := set $settings "REDIS_URL" .url }}{{ end }}
{{- end }}
{{- range $server := list "nats" "redis" }}{{ with index $root.Values $server }}
  {{- if and .enabled .clientTlsSecret (not .tlsSecret) }}
    {{- fail (printf "%s.clientTlsSecret needs %s.tlsSecret" $server $server) }}
  {{- end }}
  {{- $files := dict }}
  {{- if .tlsSecret }}{{ $_ := set $files "CA" "ca.crt" }}{{ end }}
  {{- if .clientTlsSecret }}{{ $_ := merge $files (dict "CERT" "tls.crt" "KEY" "tls.key") }}{{ end }}
  {{- range $name, $file := $files }}
    {{- $_ := set $settings (printf "%s_TLS_%s" (upper $server) $name) (printf "/etc/broomwagon/%s/%s" $server $file) }}
  {{- end }}
{{- end }}{{ end }}
{{- if eq $app.key "loadBalancer" }}{{ with $root.Values.discovery }}{{ if .enabled }}
  {{- $_ := set $settings "K8S_LABEL_SELECTOR" (required "discovery.labelSelector is required" .labelSelector) }}
  {{- $_ := set $settings "K8S_NAMESPACE" (.namespace | default $root.Release.Namespace) }}
  {{- $_ := set $settings "K8S_PORT_NAME" .portName }}
  {{- $_ := set $settings "K8S_DRAIN_MS" .drainMs }}
{{- end }}{{ end }}{{ end }}
{{- mergeOverwrite $settings (deepCopy $root.Values.settings) $app.settings | toJson }}
{{- end }}

{{/* Names of the Secrets with environment variables of one service, the last one has precedence. */}}
{{- define "broomwagon.secrets" -}}
{{- $root := first . }}
{{- $app := last . }}
{{- $own := ternary (list $app.fullname) list (or $root.Values.nats.enabled $root.Values.redis.enabled) }}
{{- concat $own (compact (list $root.Values.existingSecret $app.existingSecret)) | toJson }}
{{- end }}

{{/* The variable in deploy/nats and deploy/redis for the password of a user. Argument: list SERVER USER. */}}
{{- define "broomwagon.passwordKey" -}}
{{ first . | upper }}_{{ last . | upper | replace "-" "_" }}_PASSWORD
{{- end }}

{{/* SHUTDOWN_TIMEOUT_MS bounds the whole shutdown, so it must be longer than the drain. */}}
{{- define "broomwagon.terminationGracePeriodSeconds" -}}
{{- $app := last . }}
{{- $settings := include "broomwagon.settings" . | fromJson }}
{{- $shutdownMs := $settings.SHUTDOWN_TIMEOUT_MS | default 25000 | int64 }}
{{- $drainMs := $settings.DRAIN_MS | default 5000 | int64 }}
{{- if and (has $app.key (list "worker" "gateway")) (ge $drainMs $shutdownMs) }}
  {{- fail (printf "%s: SHUTDOWN_TIMEOUT_MS (%d) must be above DRAIN_MS (%d)" $app.name $shutdownMs $drainMs) }}
{{- end }}
{{- add $app.preStopSeconds (div (add $shutdownMs 999) 1000) 5 }}
{{- end }}

{{/* Volumes of the services for TLS to NATS and Redis: the CA, and the client certificate. */}}
{{- define "broomwagon.tlsVolumes" -}}
{{- range $server := list "nats" "redis" }}
{{- with index $.Values $server }}{{ if or .tlsSecret .clientTlsSecret }}
- name: {{ $server }}-tls
  projected:
    defaultMode: 0440
    sources:
      {{- with .tlsSecret }}
      - secret: { name: {{ . }}, items: [{ key: ca.crt, path: ca.crt }] }
      {{- end }}
      {{- with .clientTlsSecret }}
      - secret: { name: {{ . }}, items: [{ key: tls.crt, path: tls.crt }, { key: tls.key, path: tls.key }] }
      {{- end }}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{- define "broomwagon.tlsVolumeMounts" -}}
{{- range $server := list "nats" "redis" }}
{{- with index $.Values $server }}{{ if or .tlsSecret .clientTlsSecret }}
- { name: {{ $server }}-tls, mountPath: /etc/broomwagon/{{ $server }}, readOnly: true }
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{/* The certificates of NATS or Redis. Argument: the values of the server. */}}
{{- define "broomwagon.serverTls" -}}
{{- if .tlsSecret }}
- name: tls
  projected:
    defaultMode: 0440
    sources:
      - secret: { name: {{ .tlsSecret }} }
      {{- with .clientTlsSecret }}
      - secret: { name: {{ . }}, items: [{ key: tls.crt, path: client.crt }, { key: tls.key, path: client.key }] }
      {{- end }}
{{- end }}
{{- end }}

{{/* Volumes of NATS and Redis beside those of their claims. Argument: the values of the server. */}}
{{- define "broomwagon.serverVolumes" -}}
{{- include "broomwagon.serverTls" . }}
{{- if not .persistence.enabled }}
- { name: data, emptyDir: {} }
{{- end }}
{{- end }}

{{/*
Which nodes pods run on: different nodes and different zones, where there are enough. Argument: list ROOT COMPONENT VALUES.
*/}}
{{- define "broomwagon.placement" -}}
{{- $selector := include "broomwagon.selector" (list (first .) (index . 1)) }}
{{- with last . }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- with .affinity }}{{ toYaml . | nindent 2 }}{{ else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels: {{- nindent 14 $selector }}
  {{- end }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    # A label of the pods of Deployments; others do without.
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels: {{- nindent 8 $selector }}
{{- end }}

{{/* Port, probes and limits of an exporter of metrics beside NATS or Redis. Argument: list VALUES PORT. */}}
{{- define "broomwagon.exporter" -}}
ports: [{ name: metrics, containerPort: {{ last . }} }]
startupProbe: { tcpSocket: { port: metrics }, periodSeconds: 2, failureThreshold: 60 }
readinessProbe: { tcpSocket: { port: metrics } }
livenessProbe: { tcpSocket: { port: metrics }, periodSeconds: 30 }
resources: {{- toYaml (first .).resources | nindent 2 }}
securityContext: {{- include "broomwagon.containerSecurity" . | nindent 2 }}
{{- end }}

{{/* How many servers Redis has. */}}
{{- define "broomwagon.redisServers" -}}
{{- with .Values.redis }}
{{- $ofCluster := mul .cluster.primaries (add 1 .cluster.replicas) }}
{{- get (dict "single" 1 "sentinel" 3 "cluster" $ofCluster) .mode }}
{{- end }}
{{- end }}

{{/* With the namespace: workers of other namespaces use these names too. */}}
{{- define "broomwagon.redisDomain" -}}
{{ include "broomwagon.fullname" . }}-redis-servers.{{ .Release.Namespace }}.svc
{{- end }}

{{/* A JSON list of the names of the servers of Redis. */}}
{{- define "broomwagon.redisHosts" -}}
{{- $hosts := list }}
{{- range until (include "broomwagon.redisServers" . | int) }}
  {{- $hosts = append $hosts (printf "%s-redis-%d.%s" (include "broomwagon.fullname" $) . (include "broomwagon.redisDomain" $)) }}
{{- end }}
{{- toJson $hosts }}
{{- end }}

{{/* REDIS_URL of a user of the Redis of this release. Argument: list ROOT USER PASSWORD. */}}
{{- define "broomwagon.redisUrl" -}}
{{- $root := first . }}
{{- $login := printf "%s:%s" (index . 1) (index . 2) }}
{{- with $root.Values.redis }}
{{- $scheme := ternary "rediss" "redis" (ne .tlsSecret "") }}
{{- $hosts := include "broomwagon.redisHosts" $root | fromJsonArray }}
{{- if eq .mode "single" }}{{ $scheme }}://{{ $login }}@{{ include "broomwagon.fullname" $root }}-redis:6379
{{- else if eq .mode "sentinel" }}{{ $scheme }}+sentinel://{{ $login }}@{{ join ":26379," $hosts }}:26379/main
{{- else }}{{ $scheme }}+cluster://{{ $login }}@{{ join ":6379," $hosts }}:6379
{{- end }}
{{- end }}
{{- end }}

{{- define "broomwagon.volumeClaims" -}}
{{- if .persistence.enabled }}
volumeClaimTemplates:
  - metadata: { name: data }
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .persistence.storageClass }}
      storageClassName: {{ . }}
      {{- end }}
      resources: { requests: { storage: {{ .persistence.size }} } }
{{- end }}
{{- end }}
