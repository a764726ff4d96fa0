"""The group rules written a second time, as plainly as they can be: what the audit holds the engine against."""
