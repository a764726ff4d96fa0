"""The engine: the time of the log, the rules of groups, shards, and the runtime that drives them on Spark."""
