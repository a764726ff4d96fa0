"""Answers for language models, by the Model Context Protocol: who was removed from which group, why, and what is next.

`answers` has the form of each answer, `log_answers` takes them from brokers' logs or a history, `dashboard_answers`
from a dashboard's API, and `tools` gives them to a client. Nothing can be changed, and no file is read but those that
the command line names.
"""
