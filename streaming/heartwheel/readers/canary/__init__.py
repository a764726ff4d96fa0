"""Members that fall silent on schedule: whether expirations are true and in time is measured all the time."""
