"""Fuzz the way of records through the engine and of lines through `explain`, for as long as you like: `make fuzz`.

With atheris, which follows the coverage of our own code; where it cannot be installed, with Hypothesis and new seeds.
What fails is written to artifacts/fuzz; put it into tests/fuzz/corpus, where the test run looks at it for ever.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
FOUND: Final = Path("artifacts/fuzz")
LINE: Final = b"GroupCoordinator "
"""What makes the fuzzer's bytes a line of a broker's log."""
SEPARATOR: Final = b"\n\xff\n"
"""Cuts the fuzzer's bytes into the records of a batch; JSON never holds it."""


def main() -> int:
    """Fuzz, and return the exit code: 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default: 5)")
    seconds = int(parser.parse_args().minutes * 60)
    sys.path.insert(0, str(HERE.parent))
    if importlib.util.find_spec("atheris"):
        return _with_atheris(seconds)
    sys.stderr.write("atheris is not installed: going on with Hypothesis, which follows no coverage\n")
    return _with_hypothesis(seconds)


def _with_atheris(seconds: int) -> int:
    import atheris  # noqa: PLC0415 - an optional tool

    with atheris.instrument_imports(include=["heartwheel"]):
        import heartwheel.engine.operations_job.advance  # noqa: PLC0415 - imported now, so that its coverage is seen
        import heartwheel.engine.runtime.state.state_function  # noqa: PLC0415 - likewise
        import heartwheel.sources.explain.scan  # noqa: F401, PLC0415 - likewise
    from fuzz.line_oracle import check_cost, check_line  # noqa: PLC0415 - likewise
    from fuzz.operations_oracle import check_operations, is_operation  # noqa: PLC0415 - likewise
    from fuzz.oracle import accepted, check_records  # noqa: PLC0415 - likewise

    def one_input(data: bytes) -> None:
        values = data.split(SEPARATOR)[:8]
        if LINE in values[0]:
            check_line(values[0])
            check_cost(values[0])
            return
        # The whole way costs a hundred times as much as the decoder: only batches with something in them take it.
        if any(accepted(value) for value in values):
            check_records([(None, value) for value in values])
        if any(map(is_operation, values)):
            check_operations([(None, value) for value in values])

    corpus = FOUND / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", "-max_len=8192", "-timeout=60", "-rss_limit_mb=4096", "-verbosity=1"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={FOUND}/", str(corpus), str(HERE / "corpus")], one_input)
    atheris.Fuzz()  # ends the process by itself, with a code above 0 if something was found
    return 0


def _with_hypothesis(seconds: int) -> int:
    import pytest  # noqa: PLC0415 - only needed here

    os.environ["HEARTWHEEL_EXAMPLES"] = "1000"
    end, code = time.monotonic() + seconds, 0
    while code == 0 and time.monotonic() < end:
        seed = time.time_ns() % 2**32
        code = pytest.main(
            ["-q", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}", str(HERE), "-k", "any_records"]
        )
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
