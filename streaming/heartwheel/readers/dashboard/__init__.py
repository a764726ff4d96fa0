"""The dashboard: a server that shows a live picture of the engine as a page, as JSON and as a stream of events."""
