"""The driver's side of a job: its query, batches, ticks, checkpoint and progress."""
