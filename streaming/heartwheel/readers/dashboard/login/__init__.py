"""Access control: users with passwords, a token, or a proxy that has done the login."""
