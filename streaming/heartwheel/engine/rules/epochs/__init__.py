"""The rules of groups of the new protocol (KIP-848), which count epochs."""
