"""heartwheel: a session-timeout engine on Spark Structured Streaming.

A heartbeat becomes a verdict in this order (`docs/architecture.md` has the drawing, and where time comes from):

- `wire`: the rows of every public topic; `log_time`: what the append times of the log prove;
- `coordinator`: the rules of one group; `shard`: many groups as columns; `spark`: the job; `operations`: delayed ones.

Who reads its topics: `live` keeps a bounded picture, `dashboard`, `top`, `notify` and `metrics` show it.
Who proves it: `audit` derives every verdict anew, `simulation` runs whole histories, `replay` logs of requests,
`canary` watches the job that runs; `feed` makes members and `broker` a real Kafka.
Who opens the door: `cli`, `demo`, `explain`, `gateway`, `tap`.
Beside all of them: `kafka` (clients), `http_server` (of dashboard and gateway), `settings`, `errors`.
"""
