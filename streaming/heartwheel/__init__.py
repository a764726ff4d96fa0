"""heartwheel: a session-timeout engine on Spark Structured Streaming.

Nine rooms, each built on those before it (`docs/architecture.md` has the drawing, and where time comes from):

- `base`: errors, plain text, addresses, clocks;
- `wire`: the rows of every public topic;
- `kafka`: clients, and in `kafka.broker` a real Kafka from locked jars;
- `settings`: the configuration;
- `engine`: what append times prove (`time`), the rules of one group (`rules`), many groups as columns (`shard`), the
  runtime of jobs on Spark (`runtime`) with what plugs into it (`heartbeats`, `operations`), and the rules on a log of
  requests (`replay`);
- `readers`: who reads the job's topics: `live` keeps a bounded picture, `dashboard`, `top`, `notify` and `metrics` show
  it, `canary` watches the job;
- `sources`: who else knows of members: `explain` (a broker's own log), `tap` (its request log), `gateway` (HTTP);
- `proof`: `audit` derives every verdict again, `simulation` runs whole histories, `members` beat and die on purpose;
- `front`: `cli` and `demo`.
"""
