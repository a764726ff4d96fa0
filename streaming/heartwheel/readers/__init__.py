"""What reads the topics of a job: live views, the dashboard, metrics, notifications, `top` and the canary."""
