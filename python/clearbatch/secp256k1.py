"""
Recoverable ECDSA signatures on secp256k1 with deterministic nonces (RFC 6979) and low s. The first available implementation is used:
`coincurve`, the system's libsecp256k1 through ctypes, or Python's integers.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import hmac
import secrets
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

#: Order of the group.
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_P = 2**256 - 2**32 - 977
_G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


class Curve(Protocol):
    """One implementation. Keys and digests have 32 bytes."""

    def public_key(self, key: bytes) -> bytes:
        """x and y: 64 bytes."""

    def sign(self, key: bytes, digest: bytes) -> tuple[bytes, int]:
        """r and s (64 bytes), and the recovery id (0 or 1)."""


class CoincurveCurve:
    def __init__(self) -> None:
        from coincurve import PrivateKey

        # It computes the public key, which takes longer than a signature.
        self._private_key = lru_cache(maxsize=8)(PrivateKey)

    def public_key(self, key: bytes) -> bytes:
        return bytes(self._private_key(key).public_key.format(compressed=False)[1:])

    def sign(self, key: bytes, digest: bytes) -> tuple[bytes, int]:
        signature = self._private_key(key).sign_recoverable(digest, hasher=None)
        return bytes(signature[:64]), signature[64]


class LibraryCurve:
    """libsecp256k1 of the system."""

    _SIGN_AND_VERIFY = 0x301
    _UNCOMPRESSED = 2
    _NAMES = ("libsecp256k1.so.1", "libsecp256k1.so.2", "libsecp256k1.so.0", "libsecp256k1.dylib")

    def __init__(self) -> None:
        found = ctypes.util.find_library("secp256k1")
        for name in ([found] if found else []) + list(self._NAMES):
            try:
                self._library = ctypes.CDLL(name)
                break
            except OSError:
                continue
        else:
            raise ImportError("libsecp256k1 is not installed")
        if not hasattr(self._library, "secp256k1_ecdsa_sign_recoverable"):
            raise ImportError("the installed libsecp256k1 lacks the module recovery")
        create = self._library.secp256k1_context_create
        create.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(create(ctypes.c_uint(self._SIGN_AND_VERIFY)))
        self._library.secp256k1_context_randomize(self._context, secrets.token_bytes(32))

    def public_key(self, key: bytes) -> bytes:
        point = ctypes.create_string_buffer(64)
        if self._library.secp256k1_ec_pubkey_create(self._context, point, key) != 1:
            raise ValueError("libsecp256k1 refuses the private key")
        output, size = ctypes.create_string_buffer(65), ctypes.c_size_t(65)
        self._library.secp256k1_ec_pubkey_serialize(
            self._context, output, ctypes.byref(size), point, ctypes.c_uint(self._UNCOMPRESSED)
        )
        return output.raw[1:65]

    def sign(self, key: bytes, digest: bytes) -> tuple[bytes, int]:
        signature = ctypes.create_string_buffer(65)
        if self._library.secp256k1_ecdsa_sign_recoverable(self._context, signature, digest, key, None, None) != 1:
            raise ValueError("libsecp256k1 refuses the private key")
        output, recovery = ctypes.create_string_buffer(64), ctypes.c_int()
        self._library.secp256k1_ecdsa_recoverable_signature_serialize_compact(
            self._context, output, ctypes.byref(recovery), signature
        )
        return output.raw, recovery.value


_Point = tuple[int, int, int]


class PythonCurve:
    """
    Without native code: a few milliseconds per signature. Python's integers do not take constant time, so the scalars are blinded: each
    multiplication and inversion works on a random multiple.
    """

    def public_key(self, key: bytes) -> bytes:
        x, y = _multiply_generator(int.from_bytes(key, "big"))
        return x.to_bytes(32, "big") + y.to_bytes(32, "big")

    def sign(self, key: bytes, digest: bytes) -> tuple[bytes, int]:
        secret, message = int.from_bytes(key, "big"), int.from_bytes(digest, "big") % N
        for nonce in _nonces(key, message.to_bytes(32, "big")):
            x, y = _multiply_generator(nonce)
            r = x % N
            blind = secrets.randbelow(N - 1) + 1
            s = pow(nonce * blind % N, -1, N) * (blind * (message + r * secret) % N) % N
            if r == 0 or s == 0 or x >= N:
                continue
            is_high = s > N // 2
            s = N - s if is_high else s
            return r.to_bytes(32, "big") + s.to_bytes(32, "big"), (y & 1) ^ is_high
        raise AssertionError("nonces do not end")


def _nonces(key: bytes, message: bytes) -> Iterator[int]:
    """RFC 6979, 3.2, with SHA-256."""

    def mac(secret: bytes, data: bytes) -> bytes:
        return hmac.new(secret, data, hashlib.sha256).digest()

    v, k = b"\x01" * 32, b"\0" * 32
    for separator in (b"\0", b"\x01"):
        k = mac(k, v + separator + key + message)
        v = mac(k, v)
    while True:
        v = mac(k, v)
        if 0 < int.from_bytes(v, "big") < N:
            yield int.from_bytes(v, "big")
        k = mac(k, v + b"\0")
        v = mac(k, v)


def _multiply_generator(scalar: int) -> tuple[int, int]:
    blinded = scalar + N * (secrets.randbits(64) | 1 << 63)
    z = secrets.randbelow(_P - 1) + 1
    base = (_G[0] * z * z % _P, _G[1] * z * z * z % _P, z)
    result: _Point = (0, 1, 0)
    for bit in bin(blinded)[2:]:
        result = _double(result)
        if bit == "1":
            result = _add(result, base)
    inverse = pow(result[2], -1, _P)
    return result[0] * inverse * inverse % _P, result[1] * inverse * inverse * inverse % _P


def _double(point: _Point) -> _Point:
    x, y, z = point
    if z == 0:
        return point
    square = y * y % _P
    s = 4 * x * square % _P
    m = 3 * x * x % _P
    new_x = (m * m - 2 * s) % _P
    return new_x, (m * (s - new_x) - 8 * square * square) % _P, 2 * y * z % _P


def _add(one: _Point, other: _Point) -> _Point:
    if one[2] == 0:
        return other
    (x1, y1, z1), (x2, y2, z2) = one, other
    z1z1, z2z2 = z1 * z1 % _P, z2 * z2 % _P
    u1, u2 = x1 * z2z2 % _P, x2 * z1z1 % _P
    s1, s2 = y1 * z2 * z2z2 % _P, y2 * z1 * z1z1 % _P
    if u1 == u2:
        return _double(one) if s1 == s2 else (0, 1, 0)
    h, r = (u2 - u1) % _P, (s2 - s1) % _P
    h2 = h * h % _P
    h3, v = h * h2 % _P, u1 * h2 % _P
    x = (r * r - h3 - 2 * v) % _P
    return x, (r * (v - x) - s1 * h3) % _P, h * z1 * z2 % _P


def best_curve() -> Curve:
    for implementation in (CoincurveCurve, LibraryCurve):
        try:
            return implementation()
        except ImportError:
            continue
    return PythonCurve()
