"""Keccak-256: the implementation of pycryptodome if it is installed, otherwise one in Python (0.2 ms per block)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

_MASK = (1 << 64) - 1
_RATE = 136


def _round_constants() -> list[int]:
    constants, register = [], 1
    for _ in range(24):
        constant = 0
        for power in range(7):
            if register & 1:
                constant |= 1 << ((1 << power) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return constants


_CONSTANTS = _round_constants()


def _rotate(lane: int, by: int) -> int:
    return ((lane << by) | (lane >> (64 - by))) & _MASK


def _permute(lanes: list[int]) -> list[int]:
    for constant in _CONSTANTS:
        columns = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
        mixed = [columns[(x + 4) % 5] ^ _rotate(columns[(x + 1) % 5], 1) for x in range(5)]
        lanes = [lane ^ mixed[at % 5] for at, lane in enumerate(lanes)]
        x, y, current = 1, 0, lanes[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            current, lanes[x + 5 * y] = lanes[x + 5 * y], _rotate(current, (step + 1) * (step + 2) // 2 % 64)
        lanes = [
            lanes[at] ^ (~lanes[at - at % 5 + (at + 1) % 5] & lanes[at - at % 5 + (at + 2) % 5]) for at in range(25)
        ]
        lanes[0] ^= constant
    return lanes


def keccak256_in_python(message: bytes) -> bytes:
    padded = bytearray(message) + b"\x01" + b"\0" * (-(len(message) + 1) % _RATE)
    padded[-1] |= 0x80
    lanes = [0] * 25
    for start in range(0, len(padded), _RATE):
        for at in range(_RATE // 8):
            lanes[at] ^= int.from_bytes(padded[start + 8 * at : start + 8 * at + 8], "little")
        lanes = _permute(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _installed() -> Callable[[bytes], bytes] | None:
    """Debian and `pycryptodomex` name the module `Cryptodome`; `pycryptodome` names it `Crypto`."""
    for package in ("Cryptodome", "Crypto"):
        try:
            keccak = import_module(f"{package}.Hash.keccak")
        except ImportError:
            continue
        return lambda message: bytes(keccak.new(digest_bits=256, data=message).digest())
    return None


keccak256: Callable[[bytes], bytes] = _installed() or keccak256_in_python
