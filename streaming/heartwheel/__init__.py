"""heartwheel: a session-timeout engine on Spark Structured Streaming."""
