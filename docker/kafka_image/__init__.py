"""Build a Kafka container image where no registry can be reached: from this machine's JDK and the locked jars."""
