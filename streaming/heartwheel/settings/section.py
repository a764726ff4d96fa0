"""The base of a section of the configuration, and the types that several sections share."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

_UNIT_SUFFIXES: Final = ("_ms", "_bytes")


def key_of(attribute: str) -> str:
    """Name the key of a field: its attribute without the unit."""
    for suffix in _UNIT_SUFFIXES:
        attribute = attribute.removesuffix(suffix)
    return attribute


class Section(BaseModel):
    """One section of the configuration; frozen, and strict about types and keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=key_of,
        validate_by_name=True,
        validate_by_alias=True,
    )


# Kafka's own rule for names, so that a typo fails here and not at the broker.
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]+$", max_length=249)]


_Server = r"[^\s,:]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}"


BootstrapServers = Annotated[str, Field(pattern=rf"^({_Server})(,({_Server}))*$")]


FeedNames = Annotated[str, Field(pattern=r"^([a-zA-Z0-9._-]{1,64}(,[a-zA-Z0-9._-]{1,64})*)?$")]


Share = Annotated[float, Field(ge=0, le=1)]


Rate = Annotated[float, Field(ge=0, le=60)]
