"""Members that beat and die on purpose, the truth about what they did, and a judge of what was made of it."""
