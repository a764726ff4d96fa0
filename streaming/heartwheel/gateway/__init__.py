"""The gateway: workers beat over HTTP, and are told only what Kafka has acknowledged."""
