"""The one place where rows that the engine wrote meet what was expected.

`matcher` compares them with the verdicts that the audit derives from the log of heartbeats, by their ids: that is
`heartwheel audit`, and how the demo judges its job. `pairs` compares them with what another observer has reported of
the same members, by their times: `broker_log` does so for the log of Kafka's own coordinator.
"""
