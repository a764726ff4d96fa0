"""Explain a broker's ordinary log: which members were removed from which group, when and why, and what it cost.

`layouts` finds time and message in a line, `texts` parses the message into a `Fact`, `order` merges the facts of
several files by time, and `history` turns them into explained events. None of it needs Kafka, Spark or a checkpoint.
"""
