"""Exact conversion between human-readable decimals and the integers times 1e18 that are signed."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal, TypedDict, Union

PLACES = 18
E18 = 10**PLACES

#: An amount in human units. Binary floats are refused: 0.1 is not a tenth.
Amount = Union[Decimal, str]
Side = Literal["LONG", "SHORT"]

_DECIMAL = re.compile(r"(-?)([0-9]+)(?:\.([0-9]{1,18}))?")


class Grid(TypedDict):
    """The fields of a market that rounding reads."""

    tick_size_e18_raw: str
    step_size_e18_raw: str


def to_e18(amount: Amount, name: str = "amount") -> int:
    """`"1.5"` -> 1500000000000000000. Raises `TypeError` for other types and `ValueError` for other texts."""
    if isinstance(amount, Decimal):
        if not amount.is_finite():
            raise ValueError(f"{name} must be a finite decimal; received {amount}")
        text = f"{amount:f}"
        whole, _, fraction = text.partition(".")
        text = f"{whole}.{fraction.rstrip('0')}" if fraction.rstrip("0") else whole
    elif isinstance(amount, str):
        text = amount.strip()
    else:
        raise TypeError(
            f'{name} must be a Decimal or a str such as "64000.1"; received {amount!r} of type {type(amount).__name__}'
        )
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise ValueError(
            f'{name} must be a decimal with at most {PLACES} places, such as "64000.1"; received "{amount}"'
        )
    scaled = int(match[2] + (match[3] or "").ljust(PLACES, "0"))
    return -scaled if match[1] else scaled


def from_e18(value: int) -> str:
    """1500000000000000000 -> `"1.5"`."""
    whole, fraction = divmod(abs(value), E18)
    digits = f"{fraction:018d}".rstrip("0")
    return f"{'-' if value < 0 else ''}{whole}{'.' + digits if digits else ''}"


def from_raw(raw: str | int) -> Decimal:
    """The exact decimal of a field that ends in `_e18_raw`."""
    return Decimal(from_e18(int(raw)))


def round_price(market: Grid, price: Amount, side: Side) -> Decimal:
    """The nearest price on the market's grid that is not worse for the trader: a buy rounds down, a sell up."""
    tick = int(market["tick_size_e18_raw"])
    wanted = to_e18(price, "price")
    ticks = wanted // tick if side == "LONG" else -(-wanted // tick)
    return from_raw(ticks * tick)


def round_quantity(market: Grid, quantity: Amount) -> Decimal:
    """The largest quantity on the market's grid that does not exceed `quantity`."""
    step = int(market["step_size_e18_raw"])
    return from_raw(to_e18(quantity, "quantity") // step * step)


def on_grid(name: str, amount: Amount, increment: int) -> int:
    """The amount times 1e18. Raises `ValueError` with the two nearest valid amounts if it is no multiple of `increment`."""
    value = to_e18(amount, name)
    if value < 0:
        raise ValueError(f"{name} must not be negative; received {amount}")
    below = value // increment * increment
    if value != below:
        raise ValueError(
            f"{name} {from_e18(value)} is not a multiple of {from_e18(increment)}: "
            f"use {from_e18(below)} or {from_e18(below + increment)}"
        )
    return value
