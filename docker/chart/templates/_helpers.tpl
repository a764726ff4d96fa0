{{/* The labels of a component, which are its selector, too. Takes root and name. */}}
{{- define "heartwheel.labels" -}}
app.kubernetes.io/part-of: heartwheel
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/name: {{ .name }}
{{- end }}

{{/* The metadata of an object. Takes root, name of the component, and object, the end of the object's name. */}}
{{- define "heartwheel.metadata" -}}
name: {{ .root.Release.Name }}{{ with .object }}-{{ . }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "heartwheel.labels" . | nindent 2 }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* An image. Takes root and target. */}}
{{- define "heartwheel.image" -}}
{{- $image := index .root.Values.images .target -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Refuse a setting that holds a secret. Takes the names of a map, and where it is. */}}
{{- define "heartwheel.no.secrets" -}}
{{- range $key := .names }}
{{- if regexMatch "(?i)pass(word|phrase|wd)|pwd|secret|token|credential|jaas|access[._]key|\\.key$|^notify\\.url$" $key }}
{{- fail (printf "%s: %s is a secret, and values hold none. Name a Secret: kafkaSecret, dashboard.login, gateway.accessSecret, notifier.webhookSecret, job.metricsTokenSecret" $.place $key) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The arguments that every command takes. Takes root and values, those of the component. */}}
{{- define "heartwheel.arguments" -}}
- --bootstrap-servers
- {{ .root.Values.kafka.bootstrapServers | quote }}
{{- $settings := merge dict .values.settings .root.Values.settings }}
{{- include "heartwheel.no.secrets" (dict "place" "settings" "names" (keys $settings)) }}
{{- range $key, $value := $settings }}
{{- if regexMatch "^(kafka\\.bootstrap_servers|(dashboard|gateway)\\.(host|port|allow_hosts|insecure|.*_file|tls_.*)|notify\\.state_dir|checkpoint\\..*|spark\\.(master|executor_python|shuffle_partitions)|metrics\\.(host|port))$" $key }}
{{- fail (printf "settings: %s is set by the chart; use the value for it" $key) }}
{{- end }}
- --set
- {{ printf "%s=%s" $key $value | quote }}
{{- end }}
{{- end }}

{{- define "heartwheel.kafka.user" -}}
{{- .values.kafkaUser | default (printf "%s-%s" .root.Release.Name .name) -}}
{{- end }}

{{/* Whether a component has a login at Kafka: "password", "certificate" or nothing. */}}
{{- define "heartwheel.kafka.login" -}}
{{- $security := .Values.kafka.security -}}
{{- if hasPrefix "SASL_" $security.protocol -}}
password
{{- else if and (eq $security.protocol "SSL") $security.clientCertificate -}}
certificate
{{- end -}}
{{- end }}

{{- define "heartwheel.kafka.env" -}}
{{- $security := .root.Values.kafka.security }}
{{- $login := include "heartwheel.kafka.login" .root }}
{{- if ne $security.protocol "PLAINTEXT" }}
- name: HEARTWHEEL_KAFKA__CLIENT__SECURITY_PROTOCOL
  value: {{ $security.protocol }}
{{- end }}
{{- if eq $login "password" }}
- name: HEARTWHEEL_KAFKA__CLIENT__SASL_MECHANISM
  value: {{ $security.mechanism }}
- name: HEARTWHEEL_KAFKA__CLIENT__SASL_USERNAME
  value: {{ include "heartwheel.kafka.user" . | quote }}
- name: HEARTWHEEL_KAFKA__CLIENT__SASL_PASSWORD
  value: file:/run/secrets/kafka-user/password
{{- else if eq $login "certificate" }}
- name: HEARTWHEEL_KAFKA__CLIENT__SSL_CERTIFICATE_LOCATION
  value: /run/secrets/kafka-user/user.crt
- name: HEARTWHEEL_KAFKA__CLIENT__SSL_KEY_LOCATION
  value: /run/secrets/kafka-user/user.key
{{- end }}
{{- if and (hasSuffix "SSL" $security.protocol) $security.caSecret }}
- name: HEARTWHEEL_KAFKA__CLIENT__SSL_CA_LOCATION
  value: /run/secrets/kafka-ca/ca.crt
{{- end }}
{{- end }}

{{/* An executor gets the login with its tasks, and needs only the authority. Takes root and, for an executor, bare. */}}
{{- define "heartwheel.kafka.mounts" -}}
{{- $security := .root.Values.kafka.security }}
{{- if and (include "heartwheel.kafka.login" .root) (not .bare) }}
- name: kafka-user
  mountPath: /run/secrets/kafka-user
  readOnly: true
{{- end }}
{{- if and (hasSuffix "SSL" $security.protocol) $security.caSecret }}
- name: kafka-ca
  mountPath: /run/secrets/kafka-ca
  readOnly: true
{{- end }}
{{- end }}

{{- define "heartwheel.kafka.volumes" -}}
{{- $security := .root.Values.kafka.security }}
{{- $login := include "heartwheel.kafka.login" .root }}
{{- if $login }}
- name: kafka-user
  secret:
    secretName: {{ .values.kafkaSecret | default (printf "%s-%s" .root.Release.Name .name) }}
    items:
      {{- range eq $login "password" | ternary (list "password") (list "user.crt" "user.key") }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
    defaultMode: 0440
{{- end }}
{{- if and (hasSuffix "SSL" $security.protocol) $security.caSecret }}
- name: kafka-ca
  secret:
    secretName: {{ $security.caSecret }}
    items:
      - {key: {{ $security.caKey }}, path: ca.crt}
    defaultMode: 0444
{{- end }}
{{- end }}

{{/* A file of a Secret as a volume. Takes name, secret and key. */}}
{{- define "heartwheel.secret.volume" -}}
- name: {{ .name }}
  secret:
    secretName: {{ .secret }}
    items:
      {{- range .keys }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
    defaultMode: 0440
{{- end }}

{{- define "heartwheel.secret.mount" -}}
- name: {{ .name }}
  mountPath: /run/secrets/{{ .name }}
  readOnly: true
{{- end }}

{{- define "heartwheel.pod.security" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "heartwheel.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What the pods of all Deployments have, before their containers. Takes root and values. */}}
{{- define "heartwheel.pod" -}}
serviceAccountName: {{ .root.Release.Name }}-{{ .account | default "reader" }}
automountServiceAccountToken: {{ not (empty .account) }}
securityContext:
  {{- include "heartwheel.pod.security" . | nindent 2 }}
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.scheduling }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A claim for a volume. Takes root, name, object, mode and volume, its values. */}}
{{- define "heartwheel.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "heartwheel.metadata" . | nindent 2 }}
  # A release that is uninstalled loses no state.
  annotations:
    helm.sh/resource-policy: keep
spec:
  accessModes: [{{ .mode }}]
  {{- with .volume.storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .volume.size }}
{{- end }}

{{/* Probes of a server. All of them ask whether it lives: /readyz says whether the engine can be trusted, or whether Kafka
answers, and a server that says why it cannot must be reached just then. Takes host and scheme. */}}
{{- define "heartwheel.probes" -}}
{{- $get := dict "path" "/healthz" "port" "http" "scheme" .scheme "httpHeaders" (list (dict "name" "Host" "value" .host)) }}
startupProbe:
  httpGet: {{ $get | toJson }}
  periodSeconds: 2
  failureThreshold: 30
readinessProbe:
  httpGet: {{ $get | toJson }}
  failureThreshold: 3
livenessProbe:
  httpGet: {{ $get | toJson }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{/* A server with its Service: Deployment of dashboard and gateway. Takes root, name, values, port, options, env and
secrets: by the name of each volume the Secret and its keys. */}}
{{- define "heartwheel.server" -}}
{{- $host := printf "%s-%s" .root.Release.Name .name }}
{{- $scheme := empty .values.tlsSecret | ternary "HTTP" "HTTPS" }}
{{- $secrets := .secrets }}
{{- if .values.tlsSecret }}
{{- $secrets = append $secrets (dict "name" "tls" "secret" .values.tlsSecret "keys" (list "tls.crt" "tls.key")) }}
{{- end }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "heartwheel.metadata" (merge (dict "object" .name) .) | nindent 2 }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels:
      {{- include "heartwheel.labels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "heartwheel.labels" . | nindent 8 }}
    spec:
      {{- include "heartwheel.pod" . | nindent 6 }}
      containers:
        - name: {{ .name }}
          image: {{ include "heartwheel.image" (dict "root" .root "target" "watch") }}
          imagePullPolicy: {{ .root.Values.images.pullPolicy }}
          args:
            - {{ .name }}
            {{- include "heartwheel.arguments" . | nindent 12 }}
            - --host
            - 0.0.0.0
            - --port
            - {{ .port | quote }}
            {{- range concat (list $host (printf "%s.%s.svc" $host .root.Release.Namespace)) .values.allowHosts }}
            - --allow-host
            - {{ . | quote }}
            {{- end }}
            {{- range .options }}
            - {{ . }}
            {{- end }}
          {{- $variables := .env }}
          {{- if .values.tlsSecret }}
          {{- range $setting, $file := dict "CERTIFICATE" "tls.crt" "KEY" "tls.key" }}
          {{- $variables = append $variables (dict "name" (printf "HEARTWHEEL_%s__TLS_%s" (upper $.name) $setting) "value" (printf "/run/secrets/tls/%s" $file)) }}
          {{- end }}
          {{- end }}
          {{- $kafka := include "heartwheel.kafka.env" . | trim }}
          {{- if or $variables $kafka }}
          env:
            {{- with $variables }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
            {{- with $kafka }}
            {{- . | nindent 12 }}
            {{- end }}
          {{- end }}
          ports:
            - name: http
              containerPort: {{ .port }}
          {{- include "heartwheel.probes" (dict "host" $host "scheme" $scheme) | trim | nindent 10 }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            {{- include "heartwheel.container.security" . | nindent 12 }}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- range $secrets }}
            {{- include "heartwheel.secret.mount" . | nindent 12 }}
            {{- end }}
            {{- with include "heartwheel.kafka.mounts" . | trim }}
            {{- . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: 64Mi
        {{- range $secrets }}
        {{- include "heartwheel.secret.volume" . | nindent 8 }}
        {{- end }}
        {{- with include "heartwheel.kafka.volumes" . | trim }}
        {{- . | nindent 8 }}
        {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "heartwheel.metadata" (merge (dict "object" .name) .) | nindent 2 }}
spec:
  selector:
    {{- include "heartwheel.labels" . | nindent 4 }}
  ports:
    - name: http
      port: {{ empty .values.tlsSecret | ternary 80 443 }}
      targetPort: http
{{- end }}

{{/* The name of a topic, as the settings have it. Takes root and topic. */}}
{{- define "heartwheel.topic" -}}
{{- $names := dict "heartbeats" "consumer-heartbeats" "expirations" "member-expirations" "triggers" "rebalance-triggers" "status" "heartwheel-status" "rejects" "heartbeat-rejects" "job" "heartwheel-job" -}}
{{- get .root.Values.settings (printf "kafka.topics.%s" .topic) | default (get $names .topic) -}}
{{- end }}

{{/* The namespaces that the watcher asks the API about, with commas: first that of the brokers' pods. Takes its values. */}}
{{- define "heartwheel.watched.namespaces" -}}
{{- $all := .causesIn }}
{{- if .pods }}{{ $all = prepend $all (index (splitList "/" .pods) 0) }}{{ end }}
{{- join "," (uniq $all) }}
{{- end }}

{{/* The way to the API of Kubernetes, for an egress rule. Takes the values of network policies. */}}
{{- define "heartwheel.kubernetes.api" -}}
ports:
  {{- range .kubernetesApiPorts }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- with .kubernetesApi }}
to:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
