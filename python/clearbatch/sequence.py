"""The position in one topic, which decides whether a message continues what was received before; and a copy of an order book. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .decimals import Side

#: `gap`: messages are missing, and the subscription must begin again.
Verdict = Literal["apply", "ignore", "gap"]


class TopicSequence:
    def __init__(self) -> None:
        self._epoch: int | None = None
        self._seq: int | None = None
        self._waits_for: Literal["subscribed", "snapshot"] | None = "subscribed"

    @property
    def position(self) -> str | None:
        """The subscription can resume after it."""
        return None if self._seq is None else f"{self._epoch}:{self._seq}"

    @property
    def is_current(self) -> bool:
        """Whether the messages applied so far are the present state, as far as this connection has received it."""
        return self._waits_for is None

    def restart(self) -> None:
        """Messages are ignored until the subscription has begun again."""
        self._waits_for = "subscribed"

    def forget(self) -> None:
        """The next subscription starts with a snapshot."""
        self._seq = None
        self.restart()

    def subscribed(self, epoch: int, resumed: bool) -> Verdict:
        if resumed and (self._seq is None or epoch != self._epoch):
            self.forget()
            return "gap"
        self._waits_for = None if resumed else "snapshot"
        return "apply"

    def take(self, message: Mapping[str, Any]) -> Verdict:
        if self._waits_for == "subscribed":
            return "ignore"
        if message["type"] == "snapshot":
            self._epoch = message.get("epoch")
            self._waits_for = None
        elif self._waits_for == "snapshot":
            return "ignore"
        elif message["prev_seq"] != self._seq or message["seq"] <= message["prev_seq"]:
            return "gap"
        self._seq = message["seq"]
        return "apply"

    def lags(self, head: int) -> bool:
        """Whether the exchange has sent messages that did not arrive. `head`: the topic's `seq` in a heartbeat."""
        return self.is_current and self._seq is not None and head > self._seq


class LocalBook:
    """A copy of a market's order book: apply each message of the topic `market.<id>.book`."""

    def __init__(self) -> None:
        self._levels: dict[str, dict[str, Mapping[str, Any]]] = {"LONG": {}, "SHORT": {}}

    def apply(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "snapshot":
            self._levels = {"LONG": {}, "SHORT": {}}
        for side, name in (("LONG", "long_levels"), ("SHORT", "short_levels")):
            for level in message["data"][name]:
                if level["quantity_e18_raw"] == "0":
                    self._levels[side].pop(level["price_e18_raw"], None)
                else:
                    self._levels[side][level["price_e18_raw"]] = level

    def levels(self, side: Side, depth: int | None = None) -> list[Mapping[str, Any]]:
        """Sorted from the best price."""
        levels = self._levels[side].values()
        return sorted(levels, key=lambda level: int(level["price_e18_raw"]), reverse=side == "LONG")[:depth]
