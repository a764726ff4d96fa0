"""Kafka on this machine: the locked jars of broker and connector, and a broker that runs from them."""
