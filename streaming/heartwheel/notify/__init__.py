"""Tell a webhook who was expired and who came back: incidents by group, signed, paced, delivered at least once."""
