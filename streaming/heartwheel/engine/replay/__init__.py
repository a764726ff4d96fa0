"""Replay of recorded logs: the rules alone, without Spark and Kafka."""
