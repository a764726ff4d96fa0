"""Clients of Kafka: connections, their security, topics, the sender, and reading a topic back."""
