"""The gateway: workers send heartbeats over HTTP, and each answer reports only what Kafka has acknowledged."""
