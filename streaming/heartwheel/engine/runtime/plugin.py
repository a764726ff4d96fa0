"""What plugs into the runtime: it knows Kafka, batches, state rows, checkpoints and faults, and a plug-in the rest.

As Kafka's coordinator-common runtime carries the group, share and transaction coordinators, one runtime here carries
jobs of one shape: records of a topic are packed by shard, each shard is advanced once a batch, and what it decides is
written to topics. A batch may run again after a crash. So `pack` and `advance` depend on nothing but their arguments,
and what they make of the same records and state is the same to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from heartwheel.engine.runtime.driver.job_config import StreamConfig
from heartwheel.engine.runtime.state.faults import Fault
from heartwheel.engine.runtime.state.output import Output
from heartwheel.engine.runtime.state.schema import StateRow
from heartwheel.settings import Settings


class Sharded(Protocol):
    """A configuration, as far as the state side needs to know it.

    Attributes:
        slots: the grouping key of each shard.
    """

    @property
    def slots(self) -> tuple[int, ...]: ...  # noqa: D102 - above


ConfigT = TypeVar("ConfigT", bound=StreamConfig)
ShardedT = TypeVar("ShardedT", bound=Sharded)
ShardedT_contra = TypeVar("ShardedT_contra", bound=Sharded, contravariant=True)
OutputT = TypeVar("OutputT")
OutputT_co = TypeVar("OutputT_co", covariant=True)


class Advance(Protocol[ShardedT_contra, OutputT_co]):
    """The state side of a plug-in: a function of a module, as Spark's workers find it by its name.

    It needs nothing of Kafka: `heartwheel.sessions` plugs in here, and brings its own source and sink.
    """

    def __call__(
        self,
        config: ShardedT_contra,
        shard_index: int,
        before: StateRow,
        frames: Iterable[pd.DataFrame],
        *,
        batch_ms: int,
        batch: int | None = None,
    ) -> tuple[StateRow, OutputT_co]:
        """Advance one shard by one batch; called in a worker, once for each shard and batch.

        Args:
            before: the state row that the batch before has left.
            frames: what `pack` has sent to this shard, as rows of `PACKED`.
            batch_ms: the batch's timestamp in Spark's offset log, the same on every replay, epoch ms.
            batch: its number, if Spark says it.

        Returns:
            The new state row, and what is to be written.

        Raises:
            StateVersionError: another release wrote the state row.
            StateBlobError: the state's blob cannot be decoded.
        """
        ...


class Plugin(Protocol[ConfigT]):
    """A plug-in of a job between topics, on the driver.

    Attributes:
        name: of the query, in Spark's own log.
        topic_key: the configuration key of its topic, which errors name.
        skip_flag: the flag of `heartwheel skip` by which a person means this job; empty for none.
    """

    name: str
    topic_key: str
    skip_flag: str

    def own_settings(self, settings: Settings) -> Settings:
        """Return the settings with this job's checkpoint in the place of `checkpoint`; called once."""
        ...

    def config(self, settings: Settings, *, shuffle_partitions: int, runs: tuple[str, ...] = ()) -> ConfigT:
        """Return the configuration of a run; called whenever the checkpoint was opened.

        Args:
            settings: those of `own_settings`.
            shuffle_partitions: of the checkpoint, where it exists, else of the settings.
            runs: the runs of the ticker that the checkpoint knows.
        """
        ...

    def pack(self, spark: SparkSession, config: ConfigT) -> DataFrame:
        """Return the map side, rows of `PACKED` from the job's topic; called at each start of the query."""
        ...

    def advance(self) -> Advance[ConfigT, Output]:
        """Return the function of the state side; called at each start of the query."""
        ...

    def adapt_to(self, fault: Fault, config: ConfigT) -> ConfigT:
        """Return the configuration for the next start of the query, after what has ended the last one."""
        ...
