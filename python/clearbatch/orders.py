"""A trader's terms, and the signed request bodies that they become."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, TypeVar

from .decimals import Amount, Side, from_e18, from_raw, on_grid, round_price, round_quantity, to_e18
from .errors import ClearbatchError, most_certain
from .responses import Market
from .signing import ORDER_NAME, ORDER_VERSION, SALT_END, Signer, domain_separator, pack_flags, typed_digest

OrderType = Literal[
    "MARKET",
    "LIMIT",
    "STOP_MARKET",
    "STOP_LIMIT",
    "TAKE_PROFIT_MARKET",
    "TAKE_PROFIT_LIMIT",
    "STOP_LOSS_MARKET",
    "STOP_LOSS_LIMIT",
]

TimeInForce = Literal["gtc", "ioc"]
IfFilled = Literal["refuse", "reduce"]

#: A market order's signature stays valid on chain until it expires, even after the order has ended at the exchange.
MARKET_ORDER_LIFE_S = 60
ADJUSTMENT_LIFE_S = 60
MOST_ORDERS = 50
MAX_BRACKET = 2**32 - 1


@dataclass(frozen=True)
class NewOrder:
    market_id: int
    side: Side
    quantity: Amount
    price: Amount | None = None
    #: LIMIT with a price and MARKET without one, unless you name another type.
    type: OrderType | None = None
    trigger: Amount | None = None
    leverage: int = 1
    reduce_only: bool = False
    #: Unix seconds; 0 is good-til-cancelled. A market order expires at most 60 s after signing.
    expiration: int = 0
    #: Your label, unique among the account's live orders. It is not signed.
    client_order_id: str | None = None
    #: "ioc": the order takes part in one auction, and its remainder ends. Only for limit orders; not signed.
    time_in_force: TimeInForce | None = None
    #: The order is refused if it crosses an earlier limit order, and never pays the taker rate. Only for limit orders; not signed.
    post_only: bool = False
    #: Your number of a bracket in the market, from 1: its entry and its exits end together. Not signed.
    bracket_id: int | None = None
    #: Label of the program that has built the order: 1 to 32 lower-case letters, digits and hyphens. Public in sums; not signed.
    builder: str | None = None
    #: Seconds from signing after which the order expires, in place of `expiration`. The signature of a cancelled or replaced order stays
    #: valid on chain until then: give quotes a short one.
    expires_in: int | None = None


@dataclass(frozen=True)
class Target:
    """The order that is replaced: by its hash, or by the label of a live order."""

    order_hash: str | None = None
    client_order_id: str | None = None

    def body(self) -> dict[str, str]:
        if (self.order_hash is None) == (self.client_order_id is None):
            raise ValueError("a target names either order_hash or client_order_id")
        if self.order_hash is not None:
            return {"order_hash": self.order_hash}
        return {"client_order_id": str(self.client_order_id)}


@dataclass(frozen=True)
class SignedOrder:
    """Sending the same signed order again never places a second one: persist it, and send it again after a lost answer."""

    order_hash: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class SignedAdjustment:
    path: Literal["/v0/account/adjust-margin", "/v0/account/adjust-leverage"]
    body: Mapping[str, Any]


class SaltSequence:
    """
    Counts up from `start`. The default is the current millisecond times 2,048 plus 18 random bits: a restart after 256 ms repeats no salt,
    and programs that start in the same millisecond have different salts at first. Programs that share an account for long use separate
    ranges. Consecutive salts share a storage word on chain, which makes fills cheaper.
    """

    def __init__(self, start: int | None = None) -> None:
        self._next = (time.time_ns() // 1_000_000 << 11) + secrets.randbits(18) if start is None else start
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            salt = self._next
            if not 0 <= salt < SALT_END:
                raise ValueError(f"salt must be an integer from 0 and below 2^53; received {salt}")
            self._next += 1
            return salt


def trigger_condition(kind: OrderType, side: Side) -> int:
    """0 without a trigger, 1 for a mark price at or above it, 2 for one at or below it."""
    if kind in ("MARKET", "LIMIT"):
        return 0
    above = side == "SHORT" if kind.startswith("TAKE_PROFIT_") else side == "LONG"
    return 1 if above else 2


def sign_order(market: Market, terms: NewOrder, signer: Signer, maker: str, salt: int, now: float) -> SignedOrder:
    """Converts the terms to the market's grid and signs them. Raises `ValueError` for amounts off the grid."""
    kind = terms.type or ("MARKET" if terms.price is None else "LIMIT")
    tick, step = int(market["tick_size_e18_raw"]), int(market["step_size_e18_raw"])
    is_market = kind.endswith("MARKET")
    price = 0 if is_market else on_grid("price", terms.price or "0", tick)
    trigger = on_grid("trigger", terms.trigger or "0", tick)
    quantity = on_grid("quantity", terms.quantity, step)
    if isinstance(terms.leverage, bool) or not isinstance(terms.leverage, int) or terms.leverage < 1:
        raise ValueError(f"leverage must be a positive whole number; received {terms.leverage!r}")
    reduce_only = terms.reduce_only or kind.startswith(("TAKE_PROFIT_", "STOP_LOSS_"))
    wanted = terms.expiration if terms.expires_in is None else int(now) + terms.expires_in
    expiration = _expiration(kind, wanted, now)
    digest = typed_digest(
        domain_separator(ORDER_NAME, ORDER_VERSION, market["chain_id"], market["trader_address"]),
        "Order",
        {
            "flags": pack_flags(salt, terms.side, reduce_only),
            "quantity": quantity,
            "price": price,
            "triggerPrice": trigger,
            "triggerCondition": trigger_condition(kind, terms.side),
            "leverage": terms.leverage * 10**18,
            "maker": maker,
            "expiration": expiration,
        },
    )
    body: dict[str, Any] = {
        "market_id": terms.market_id,
        "side": terms.side,
        "order_type": kind,
        "quantity_e18_raw": str(quantity),
        "leverage": terms.leverage,
        "expiration_seconds": expiration,
        "reduce_only": reduce_only,
        "salt": str(salt),
        "signature": f"{signer.sign_digest(digest)}01",
        "signature_type": 1,
    }
    if price:
        body["price"] = from_e18(price)
    if trigger:
        body["trigger_price"] = from_e18(trigger)
    if terms.client_order_id is not None:
        body["client_order_id"] = terms.client_order_id
    if terms.time_in_force is not None:
        body["time_in_force"] = terms.time_in_force
    if terms.post_only:
        body["post_only"] = True
    if terms.bracket_id is not None:
        body["bracket_id"] = terms.bracket_id
    if terms.builder is not None:
        body["builder"] = terms.builder
    return SignedOrder(f"0x{digest.hex()}", body)


def _expiration(kind: OrderType, wanted: int, now: float) -> int:
    if kind != "MARKET":
        return wanted
    latest = int(now) + MARKET_ORDER_LIFE_S
    return latest if wanted == 0 else min(wanted, latest)


def sign_adjustment(
    market: Market,
    kind: Literal["AdjustMargin", "AdjustLeverage"],
    values: Mapping[str, int],
    signer: Signer,
    account: str,
    nonce: int,
    now: float,
) -> dict[str, Any]:
    """The fields that both requests have."""
    deadline = int(now) + ADJUSTMENT_LIFE_S
    separator = domain_separator(ORDER_NAME, ORDER_VERSION, market["chain_id"], market["trader_address"])
    message = {**values, "account": account, "nonce": nonce, "deadline": deadline}
    signature = f"{signer.sign_digest(typed_digest(separator, kind, message))}01"
    return {
        "symbol": market["symbol"],
        "market_id": market["market_id"],
        "address": account,
        "nonce": nonce,
        "deadline": deadline,
        "signature": signature,
    }


def bracket_orders(
    entry: NewOrder, take_profit: Amount | None = None, stop_loss: Amount | None = None
) -> list[NewOrder]:
    """
    An entry with market exits at the triggers, linked by `entry.bracket_id` or a random number. Raises `ValueError` if an exit would trigger as
    soon as the entry has matched.
    """
    if take_profit is None and stop_loss is None:
        raise ValueError("a bracket needs take_profit, stop_loss, or both; received neither")
    entry = replace(entry, bracket_id=entry.bracket_id or random.randint(1, MAX_BRACKET))
    sign = 1 if entry.side == "LONG" else -1
    better, worse = ("above", "below") if sign == 1 else ("below", "above")

    def check(name: str, trigger: Amount, where: str, than: str, limit: Amount) -> None:
        distance = sign * (to_e18(trigger, name) - to_e18(limit, than))
        if distance <= 0 if where == better else distance >= 0:
            raise ValueError(f"{name} of a {entry.side} entry must be {where} {than} {limit}; received {trigger}")

    if take_profit is not None and stop_loss is not None:
        check("take_profit", take_profit, better, "stop_loss", stop_loss)
    if take_profit is not None and entry.price is not None:
        check("take_profit", take_profit, better, "the entry price", entry.price)
    if stop_loss is not None and entry.price is not None:
        check("stop_loss", stop_loss, worse, "the entry price", entry.price)
    exits: Sequence[tuple[OrderType, Amount | None, str]] = (
        ("TAKE_PROFIT_MARKET", take_profit, "-tp"),
        ("STOP_LOSS_MARKET", stop_loss, "-sl"),
    )
    side: Side = "SHORT" if entry.side == "LONG" else "LONG"
    label = entry.client_order_id
    return [entry] + [
        replace(
            entry, side=side, type=kind, price=None, trigger=trigger, reduce_only=True, expiration=0,
            time_in_force=None, post_only=False, expires_in=None,
            client_order_id=None if label is None else f"{label}{suffix}",
        )
        for kind, trigger, suffix in exits
        if trigger is not None
    ]  # fmt: skip


def scale_orders(market: Market, terms: NewOrder, first: Amount, last: Amount, count: int) -> list[NewOrder]:
    """
    `terms.quantity` in equal parts at equal distances from `first` to `last`. Prices are never worse than asked for; the last order has the
    steps that the division leaves.
    """
    if not 2 <= count <= MOST_ORDERS:
        raise ValueError(f"count must be a whole number from 2 to {MOST_ORDERS}; received {count}")
    start, end = to_e18(first, "first"), to_e18(last, "last")
    if start == end:
        raise ValueError(f"first and last must differ; received {first} for both")
    whole = on_grid("quantity", terms.quantity, int(market["step_size_e18_raw"]))
    each = to_e18(round_quantity(market, from_raw(whole // count)))
    if each == 0:
        least = from_e18(int(market["step_size_e18_raw"]) * count)
        raise ValueError(f"quantity must be at least {least}, one step per order; received {terms.quantity}")

    def part(at: int) -> NewOrder:
        price: Decimal = round_price(market, from_raw(start + (end - start) * at // (count - 1)), terms.side)
        quantity = whole - each * (count - 1) if at == count - 1 else each
        label = None if terms.client_order_id is None else f"{terms.client_order_id}-{at + 1}"
        return replace(terms, price=price, quantity=from_raw(quantity), type="LIMIT", client_order_id=label)

    return [part(at) for at in range(count)]


Answer = TypeVar("Answer", bound=Mapping[str, Any])


def or_raise(answer: Answer) -> Answer:
    """The answer to a batch if every item was accepted. Otherwise raises the first refusal; `details["rejected"]` lists all."""
    results = answer["results"]
    rejected = [{"index": at, **result["error"]} for at, result in enumerate(results) if "error" in result]
    if not rejected:
        return answer
    first, accepted = rejected[0], len(results) - len(rejected)
    raise ClearbatchError(
        f"item {first['index']} of {len(results)} was refused ({len(rejected)} in all): {first['message']}",
        status=200,
        code=first["details"]["code"],
        outcome="placed" if accepted > 0 else most_certain(one["details"]["outcome"] for one in rejected),
        details={**first["details"], "index": first["index"], "accepted": accepted, "rejected": rejected},
    )
