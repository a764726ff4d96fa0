"""What the output topics say, followed live and kept as a bounded picture: what the dashboard and `top` show."""
