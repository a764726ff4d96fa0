"""The demo: a broker, members that die, the job, and a judge, in one process and one folder."""
