"""`heartwheel config`: each value, and the layer it comes from."""

from __future__ import annotations

from typing import Any

from heartwheel.front.cli.console import AsJson, ConfigFile, SetFlags, load, plain_table, print_json, stdout
from heartwheel.settings import MASK, is_secret, masked, shown


def config(*, config: ConfigFile = None, set_: SetFlags = None, json: AsJson = False) -> None:
    """Show every setting with its value and the layer it comes from.

    Layers, the later one wins: defaults, the file, the environment, flags. Secrets are masked. With anything wrong, all
    problems are listed at once and the exit code is 2.

    For example:

        heartwheel config

        heartwheel config --set engine.trigger_interval=2s

        HEARTWHEEL_KAFKA__BOOTSTRAP_SERVERS=kafka:9092 heartwheel config --json
    """
    loaded = load(config, set_)
    values = {path: _masked(path, value) for path, value in loaded.values().items()}
    if json:
        print_json(
            {
                path: {"value": value, "layer": loaded.origin[path].layer, "source": loaded.origin[path].name}
                for path, value in values.items()
            }
        )
        return
    table = plain_table("setting", "value", "from")
    for path, value in sorted(values.items(), key=lambda item: item[0].split(".")[0]):
        table.add_row(path, shown("", value), str(loaded.origin[path]))
    stdout().print(table)


def _masked(path: str, value: Any) -> Any:
    if is_secret(path) and value:
        return MASK
    return masked(value) if isinstance(value, str) else value
