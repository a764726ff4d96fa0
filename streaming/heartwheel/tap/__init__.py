"""The tap: tails a broker's request log, and passes on what real groups send to their coordinator."""
