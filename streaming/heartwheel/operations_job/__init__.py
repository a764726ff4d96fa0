"""The job of delayed operations: shaped as the heartbeat job is, with `heartwheel.operations` in the middle."""
