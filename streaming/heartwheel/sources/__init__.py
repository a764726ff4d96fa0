"""Where events come from beside consumers that send them: brokers' logs, request logs and a gateway."""
