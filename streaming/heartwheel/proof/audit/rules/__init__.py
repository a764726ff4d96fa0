"""The group rules, written a second time and as plainly as possible. The audit compares the engine with them."""
