"""The gateway: workers beat over HTTP, and the answers say only what Kafka has acknowledged."""
