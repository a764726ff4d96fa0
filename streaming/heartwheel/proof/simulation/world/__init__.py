"""The simulated world: members, feeds, brokers and their topic, and the job that may die at any step."""
