"""Report expirations and returns to a webhook: incidents by group, signed, paced, delivered at least once."""
