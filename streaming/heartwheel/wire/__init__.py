"""The wire: the rows of every public topic as typed structs, and their JSON Schemas. Needs msgspec and nothing else."""
