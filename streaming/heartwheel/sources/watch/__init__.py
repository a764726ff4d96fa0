"""Watch brokers' logs as a service: follow them, keep what they show, and serve and report it; without Spark or Kafka.

`watched_logs` reads the logs with the reader of `heartwheel.sources.explain`, `history_file` keeps their facts and the
positions in one SQLite file, and the events are derived from the facts by the rules of `explain`, whenever they are
needed.
"""
