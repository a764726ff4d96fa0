"""The hierarchical timing wheel, as a pure library: integers and arrays, no clock, no thread, no I/O."""

from timing_wheel.columns import HANDLE_MAX, NEVER, TIME_MS_MAX
from timing_wheel.figures import LevelOccupancy, WheelStats
from timing_wheel.geometry import Geometry
from timing_wheel.snapshot import SnapshotError, WheelSnapshot
from timing_wheel.wheel import TimingWheel

__all__ = [
    "HANDLE_MAX",
    "NEVER",
    "TIME_MS_MAX",
    "Geometry",
    "LevelOccupancy",
    "SnapshotError",
    "TimingWheel",
    "WheelSnapshot",
    "WheelStats",
]
