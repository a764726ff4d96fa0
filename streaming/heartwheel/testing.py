"""The testing kit: logs written by hand, run through real shards without Spark (`heartwheel.proof.testing`).

For keys of a DataFrame of yours, `sessions.test` runs the same logic on a list.
"""

from heartwheel.proof.testing import *  # noqa: F403 - what `__all__` names
from heartwheel.proof.testing import __all__  # noqa: F401 - the same names
