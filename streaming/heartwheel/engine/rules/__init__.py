"""The coordinator's rules: one state machine a group. Pure: no Spark, no Kafka, no clock."""
