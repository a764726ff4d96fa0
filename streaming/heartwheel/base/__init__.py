"""What every other room may use: errors, plain text, addresses, clocks and watched files."""
