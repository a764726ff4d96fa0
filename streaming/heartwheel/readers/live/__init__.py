"""The content of the output topics, followed live and kept as a bounded picture: what the dashboard and `top` show."""
