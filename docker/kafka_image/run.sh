#!/bin/sh
# What the container runs. First the wrapper of Kafka's own image: it turns KAFKA_* variables into server.properties and
# formats the storage; then the broker. Only shell built-ins are used: there is nothing else in this image.
set -eu

: "${CLUSTER_ID:=heartwheel-local-kafka}"
export CLUSTER_ID

java="/opt/java/bin/java ${KAFKA_HEAP_OPTS:--Xmx384m} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${KAFKA_OPTS:-}"

setup() {
  $java -cp '/opt/kafka/libs/*' kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \
    --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config
}

# A container that is started again finds its storage formatted, which the wrapper takes for an error.
if ! setup >/tmp/setup.log 2>&1; then
  formatted=
  while read -r line; do
    case $line in *"already formatted"*) formatted=yes ;; esac
  done </tmp/setup.log
  if [ -z "$formatted" ]; then
    while read -r line; do echo "$line"; done </tmp/setup.log
    exit 1
  fi
fi

exec $java -Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml -cp '/opt/kafka/libs/*' \
  kafka.Kafka /opt/kafka/config/server.properties
