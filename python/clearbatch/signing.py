"""Digests (EIP-712) and signatures of orders, adjustments and forward requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

from .decimals import Side
from .keccak import keccak256
from .secp256k1 import N, Curve, best_curve

Fields = Sequence[Mapping[str, str]]

SALT_END: Final = 1 << 53
ORDER_NAME: Final = "IsolatedTrader"
ORDER_VERSION: Final = "2.0"


def _fields(text: str) -> Fields:
    return [dict(zip(("type", "name"), field.split(" "))) for field in text.split(",")]


_DOMAIN = _fields("string name,string version,uint256 chainId,address verifyingContract")

#: The structs that accounts sign.
TYPES: Final[Mapping[str, Fields]] = {
    "Order": _fields(
        "bytes8 flags,uint128 quantity,uint128 price,uint128 triggerPrice,uint8 triggerCondition,"
        "uint128 leverage,address maker,uint128 expiration"
    ),
    "AdjustMargin": _fields(
        "address account,int256 amount,uint8 removeMode,uint256 minAmount,uint256 nonce,uint256 deadline"
    ),
    "AdjustLeverage": _fields(
        "address account,uint256 leverage,uint256 maxMarginIn,uint256 minMarginOut,uint256 nonce,uint256 deadline"
    ),
    "ForwardRequest": _fields(
        "address from,address to,uint256 value,uint256 gas,uint256 nonce,uint48 deadline,bytes data"
    ),
}


class Signer(Protocol):
    """Signs for one address. A hardware wallet or a remote signer can implement it."""

    @property
    def address(self) -> str: ...

    def sign_digest(self, digest: bytes) -> str:
        """Signs 32 bytes as a personal message (EIP-191): 65 bytes as hex, v is 27 or 28."""


def _bytes_of(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _word(kind: str, value: Any) -> bytes:
    if kind == "string":
        return keccak256(str(value).encode())
    if kind == "address":
        return _bytes_of(value).rjust(32, b"\0")
    if kind == "bytes":
        return keccak256(_bytes_of(value))
    if kind.startswith("bytes"):
        return _bytes_of(value).ljust(32, b"\0")
    return int(value).to_bytes(32, "big", signed=kind.startswith("int"))


@lru_cache
def _type_hash(name: str) -> bytes:
    kind = ",".join(f"{field['type']} {field['name']}" for field in TYPES.get(name, _DOMAIN))
    return keccak256(f"{name}({kind})".encode())


def hash_struct(name: str, message: Mapping[str, Any]) -> bytes:
    """Of one of `TYPES`, or of the domain."""
    words = (_word(field["type"], message[field["name"]]) for field in TYPES.get(name, _DOMAIN))
    return keccak256(_type_hash(name) + b"".join(words))


@lru_cache
def domain_separator(name: str, version: str, chain_id: int, contract: str) -> bytes:
    domain = {"name": name, "version": version, "chainId": chain_id, "verifyingContract": contract}
    return hash_struct("EIP712Domain", domain)


def typed_digest(separator: bytes, name: str, message: Mapping[str, Any]) -> bytes:
    """The digest of one of `TYPES`."""
    return keccak256(b"\x19\x01" + separator + hash_struct(name, message))


def pack_flags(salt: int, side: Side, reduce_only: bool) -> str:
    if not 0 <= salt < SALT_END:
        raise ValueError(f"salt must be an integer from 0 and below 2^53; received {salt}")
    return f"0x{salt << 4 | (2 if reduce_only else 0) | (1 if side == 'LONG' else 0):016x}"


def checksummed(address: str) -> str:
    """EIP-55."""
    digits = address.lower().removeprefix("0x")
    digest = keccak256(digits.encode()).hex()
    return "0x" + "".join(letter.upper() if int(digest[at], 16) > 7 else letter for at, letter in enumerate(digits))


class PrivateKeySigner:
    """Signs with a private key in memory. Its `repr` shows the address alone."""

    def __init__(self, private_key: str, curve: Curve | None = None) -> None:
        if not re.fullmatch(r"0x[0-9a-fA-F]{64}", private_key) or not 0 < int(private_key, 16) < N:
            raise ValueError("private_key must be 0x and 64 hexadecimal digits, below the order of secp256k1")
        self._key = _bytes_of(private_key)
        self._curve = curve or best_curve()
        self._address = checksummed(keccak256(self._curve.public_key(self._key))[12:].hex())

    @property
    def address(self) -> str:
        return self._address

    def sign_digest(self, digest: bytes) -> str:
        return self.sign_hash(keccak256(b"\x19Ethereum Signed Message:\n32" + digest))

    def sign_message(self, message: str) -> str:
        """A personal message, such as a challenge of the exchange."""
        data = message.encode()
        return self.sign_hash(keccak256(b"\x19Ethereum Signed Message:\n" + str(len(data)).encode() + data))

    def sign_hash(self, digest: bytes) -> str:
        """Signs 32 bytes without a prefix: the digest of typed data, such as a forward request."""
        signature, recovery = self._curve.sign(self._key, digest)
        return f"0x{signature.hex()}{27 + recovery:02x}"

    def __repr__(self) -> str:
        return f"PrivateKeySigner({self._address})"
