"""The picture in a terminal: the present state, expirations, members at risk, and groups that rebalance."""
