"""Members that fall silent on schedule: whether expirations are true and in time is measured all the time."""

from __future__ import annotations

from heartwheel.readers.canary.canary import Canary
from heartwheel.readers.live.canary_figures import CanaryFigures

__all__ = ["Canary", "CanaryFigures"]
