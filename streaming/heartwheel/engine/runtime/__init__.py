"""The Spark room: the streaming job from the heartbeat topic to the verdict topics."""
