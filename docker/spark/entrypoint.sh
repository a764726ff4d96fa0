#!/bin/bash
# Start what Spark on Kubernetes asks a container for, `driver ARGUMENTS...` or `executor`, or else a command of heartwheel.
# Spark passes the rest in the environment (class KubernetesExecutorBuilder and its neighbours), and looks for files where
# it is started.
set -euo pipefail

case "${1:-}" in
  driver)
    shift
    cd "$SPARK_HOME/work-dir"
    set -- "$SPARK_HOME/bin/spark-submit" --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --deploy-mode client "$@"
    ;;
  executor)
    cd "$SPARK_HOME/work-dir"
    # Java options come as SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 and so on, in this order.
    options=()
    for ((i = 0; ; i++)); do
      name="SPARK_JAVA_OPT_$i"
      [[ -v $name ]] || break
      options+=("${!name}")
    done
    set -- "${JAVA_HOME:+$JAVA_HOME/bin/}java" "${options[@]}" \
      "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*:${SPARK_EXTRA_CLASSPATH:-}" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
  *)
    set -- heartwheel "$@"
    ;;
esac

exec tini -s -- "$@"
