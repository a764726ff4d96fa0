"""Logs of containers, followed over HTTP: those of pods through the API of Kubernetes, others through Docker's.

Both hand out a log by time, to the second, with the time of each entry before it. `stamps` makes one position of that,
`container_log` follows one log through broken connections and restarts, `kubernetes` and `docker` ask for them.
"""
