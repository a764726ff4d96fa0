"""The command line: one module a command, heavy imports only inside the commands that need them."""

from heartwheel.cli.app import main

__all__ = ["main"]
