"""The Kafka room: jars, an embedded broker, topics, and members that beat on purpose."""
