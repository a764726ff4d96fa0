"""The tap: tails a broker's request log, and relays what real groups send to their coordinator."""
