# ruff: noqa: INP001 - a folder of Docker's, not a package
"""What spark-submit starts in the driver: the command line of heartwheel.

It lies in a folder of its own, because the folder of what is started comes first among those that Python imports from.
"""

from __future__ import annotations

from heartwheel.front.cli import main

main()
