"""The job of delayed operations: shaped as the heartbeat job is, with `heartwheel.engine.operations` in the middle."""
