"""The picture in a terminal: how things stand, who was expired, who is next, and which groups rebalance."""
