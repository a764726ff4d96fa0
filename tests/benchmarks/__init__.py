"""What is measured; `python -m benchmarks.NAME` runs one, and a Ctrl-C ends it without a traceback."""

import sys

_show = sys.excepthook
sys.excepthook = lambda kind, *rest: None if kind is KeyboardInterrupt else _show(kind, *rest)
