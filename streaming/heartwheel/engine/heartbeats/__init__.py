"""The plug-in of heartbeats: members and groups in, expirations and rebalance triggers out."""
