"""The Kafka room: pinned jars, an embedded broker, topics, and feeders."""
