"""Silent keys of any DataFrame: the third plug-in of the runtime, behind `heartwheel.sessions`.

The map side (`packer`) sends each shard the distinct rows of a frame and the time of each event. A shard (`shard`) has
a table of its keys (`table`), a clock (`clock`) and a timing wheel. Nothing here needs Kafka.
"""
