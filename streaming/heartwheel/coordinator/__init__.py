"""The coordinator's rules, the shard that runs them, and the state it keeps. Pure: no Spark, no Kafka, no clock."""
