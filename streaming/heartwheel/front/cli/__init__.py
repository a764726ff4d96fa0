"""The command line: one module per command; heavy imports are inside the commands that need them."""

from heartwheel.front.cli.app import main

__all__ = ["main"]
