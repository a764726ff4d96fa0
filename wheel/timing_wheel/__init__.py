"""A timing wheel and a purgatory, as a pure library: integers and arrays, no clock, no thread, no I/O."""

from timing_wheel.columns import HANDLE_MAX, NEVER, TIME_MS_MAX
from timing_wheel.delayed_fetch import DelayedFetch, FetchFrom
from timing_wheel.delayed_operation import DelayedOperation, Outcome
from timing_wheel.delayed_produce import REQUEST_TIMED_OUT, DelayedProduce
from timing_wheel.figures import LevelOccupancy, WheelStats
from timing_wheel.geometry import Geometry
from timing_wheel.partitions import Isolation, Partitions, Position
from timing_wheel.purgatory import PURGE_INTERVAL, Purgatory
from timing_wheel.snapshot import SnapshotError, WheelSnapshot
from timing_wheel.wheel import TimingWheel

__all__ = [
    "HANDLE_MAX",
    "NEVER",
    "PURGE_INTERVAL",
    "REQUEST_TIMED_OUT",
    "TIME_MS_MAX",
    "DelayedFetch",
    "DelayedOperation",
    "DelayedProduce",
    "FetchFrom",
    "Geometry",
    "Isolation",
    "LevelOccupancy",
    "Outcome",
    "Partitions",
    "Position",
    "Purgatory",
    "SnapshotError",
    "TimingWheel",
    "WheelSnapshot",
    "WheelStats",
]
