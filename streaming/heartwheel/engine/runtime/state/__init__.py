"""The state side of a job: the function that advances a shard, and the rows it writes."""
