"""A bounded HTTP server: its connections, the guard before every request, names, paths, addresses and errors."""
