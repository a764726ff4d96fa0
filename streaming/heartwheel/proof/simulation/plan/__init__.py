"""The parameters of a history, drawn from its seed before it begins."""
