"""A bounded HTTP server: connections, the guard before every request, host names, paths, client addresses, errors."""
