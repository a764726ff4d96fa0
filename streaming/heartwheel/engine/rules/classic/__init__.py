"""The rules of classic groups: joins, syncs, heartbeats, leaves and expiry."""
