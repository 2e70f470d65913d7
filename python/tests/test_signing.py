"""Every implementation against the published vectors, and the rounding of amounts."""

import json
import unittest
from decimal import Decimal
from pathlib import Path

from clearbatch import NewOrder, PrivateKeySigner, from_e18, from_raw, round_price, round_quantity, to_e18
from clearbatch.keccak import keccak256, keccak256_in_python
from clearbatch.orders import bracket_orders, scale_orders, sign_order
from clearbatch.secp256k1 import CoincurveCurve, Curve, LibraryCurve, PythonCurve
from clearbatch.signing import TYPES, domain_separator, typed_digest

VECTORS = json.loads((Path(__file__).parents[2] / "docs/signing-vectors.json").read_text())
GRID = {"tick_size_e18_raw": "100000000000000000", "step_size_e18_raw": "1000000000000000"}
MARKET = {**GRID, "market_id": 1, "chain_id": 6343, "trader_address": "0x" + "11" * 20}


def digest_of(vector, name):
    domain = vector["domain"]
    separator = domain_separator(domain["name"], domain["version"], int(domain["chainId"]), domain["verifyingContract"])
    return typed_digest(separator, name, vector["struct"])


class Vectors(unittest.TestCase):
    def check(self, curve: Curve) -> None:
        signer = PrivateKeySigner(VECTORS["private_key"], curve)
        self.assertEqual(signer.address.lower(), VECTORS["address"])
        self.assertEqual(len(VECTORS["orders"]), 48)
        for vector in VECTORS["orders"]:
            digest = digest_of(vector, "Order")
            self.assertEqual("0x" + digest.hex(), vector["order_hash"])
            self.assertEqual(signer.sign_digest(digest) + "01", vector["signature"])
        self.assertEqual(len(VECTORS["adjustments"]), 8)
        self.assertEqual(len(VECTORS["forward_requests"]), 6)
        for vector in VECTORS["adjustments"] + VECTORS["forward_requests"]:
            digest = digest_of(vector, vector["primary_type"])
            self.assertEqual("0x" + digest.hex(), vector["digest"])
            self.assertEqual(signer.sign_hash(digest), vector["signature"])
            if "personal_signature" in vector:
                self.assertEqual(signer.sign_digest(digest) + "01", vector["personal_signature"])

    def test_python_integers_sign_all_vectors(self):
        self.check(PythonCurve())

    def test_libsecp256k1_signs_all_vectors(self):
        try:
            curve = LibraryCurve()
        except ImportError as reason:
            self.skipTest(str(reason))
        self.check(curve)

    def test_coincurve_signs_all_vectors(self):
        try:
            curve = CoincurveCurve()
        except ImportError as reason:
            self.skipTest(str(reason))
        self.check(curve)

    def test_structs_are_the_published_ones(self):
        published = {**VECTORS["types"], **VECTORS["action_types"]}
        for name, fields in TYPES.items():
            self.assertEqual(fields, published[name])

    def test_keccak_in_python_equals_the_installed_one(self):
        self.assertEqual(
            keccak256_in_python(b"").hex(), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
        )
        for size in (1, 31, 64, 135, 136, 137, 271, 272, 273):
            self.assertEqual(keccak256_in_python(bytes(range(size % 256)) * 2), keccak256(bytes(range(size % 256)) * 2))

    def test_a_key_that_is_none_is_refused_without_being_shown(self):
        for key in ("0x12", "0x" + "0" * 64, "0x" + "f" * 64, "secret"):
            with self.assertRaises(ValueError) as caught:
                PrivateKeySigner(key)
            self.assertNotIn(key, str(caught.exception))
        self.assertNotIn(VECTORS["private_key"][2:], repr(PrivateKeySigner(VECTORS["private_key"])))


class Orders(unittest.TestCase):
    def sign(self, order: NewOrder):
        signer = PrivateKeySigner(VECTORS["private_key"])
        return sign_order(MARKET, order, signer, signer.address, 7, 1_000_000.5)

    def test_a_market_order_expires_within_a_minute_and_has_no_price(self):
        self.assertEqual(self.sign(NewOrder(1, "LONG", "1")).body["expiration_seconds"], 1_000_060)
        body = self.sign(NewOrder(1, "LONG", "1", expiration=2_000_000)).body
        self.assertEqual((body["expiration_seconds"], "price" in body), (1_000_060, False))

    def test_exits_are_always_reduce_only(self):
        self.assertTrue(self.sign(NewOrder(1, "SHORT", "1", type="STOP_LOSS_MARKET", trigger="9")).body["reduce_only"])

    def test_amounts_off_the_grid_name_the_nearest_valid_ones(self):
        with self.assertRaisesRegex(ValueError, "price 100.05 is not a multiple of 0.1: use 100 or 100.1"):
            self.sign(NewOrder(1, "LONG", "1", price="100.05"))
        with self.assertRaisesRegex(ValueError, "use 0.001 or 0.002"):
            self.sign(NewOrder(1, "LONG", "0.0015", price="100"))

    def test_floats_integers_and_texts_that_are_no_decimals_are_refused(self):
        for value in (0.1, 1, True, None):
            with self.assertRaisesRegex(TypeError, "Decimal or a str"):
                to_e18(value)  # type: ignore[arg-type]
        for text in ("", "1e3", "1_0", "NaN", "0x1", "1.0000000000000000001", "1.", ".5", "１"):
            with self.assertRaises(ValueError):
                to_e18(text)
        for number in (Decimal("NaN"), Decimal("Infinity"), Decimal("1e-19")):
            with self.assertRaises(ValueError):
                to_e18(number)

    def test_decimals_are_exact_beyond_the_context_precision(self):
        text = "123456789012345678901.123456789012345678"
        self.assertEqual(from_e18(to_e18(text)), text)
        self.assertEqual(str(from_raw(str(to_e18(text)))), text)
        self.assertEqual([from_e18(to_e18(value)) for value in ("-1.50", Decimal("1E+2"))], ["-1.5", "100"])

    def test_prices_round_by_side_and_quantities_down(self):
        self.assertEqual(round_price(GRID, "100.05", "LONG"), Decimal("100"))
        self.assertEqual(round_price(GRID, "100.05", "SHORT"), Decimal("100.1"))
        self.assertEqual(round_price(GRID, "100.1", "SHORT"), Decimal("100.1"))
        self.assertEqual(round_quantity(GRID, "0.0019"), Decimal("0.001"))

    def test_a_bracket_that_would_trigger_at_once_is_refused(self):
        entry = NewOrder(1, "LONG", "1", price="100", client_order_id="a")
        labels = [order.client_order_id for order in bracket_orders(entry, "110", "90")]
        self.assertEqual(labels, ["a", "a-tp", "a-sl"])
        for exits in ({"take_profit": "90"}, {"stop_loss": "110"}, {}, {"take_profit": "105", "stop_loss": "106"}):
            with self.assertRaises(ValueError):
                bracket_orders(entry, **exits)

    def test_a_ladder_has_the_whole_quantity_at_prices_that_are_not_worse(self):
        ladder = scale_orders(MARKET, NewOrder(1, "SHORT", "0.01"), "100", "101", 4)
        self.assertEqual([str(order.price) for order in ladder], ["100", "100.4", "100.7", "101"])
        self.assertEqual(sum(order.quantity for order in ladder), Decimal("0.01"))


if __name__ == "__main__":
    unittest.main()
