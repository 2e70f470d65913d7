"""
Trades on a running exchange with two accounts of the file that the variable STACK names; ACCOUNTS has their numbers, such as `0,1`.
"""

import asyncio
import json
import os
import unittest
import uuid

from clearbatch import AsyncClient, Client, ClearbatchError, LocalBook, NewOrder, from_raw, or_raise, round_price

STACK = json.load(open(os.environ["STACK"]))
ACCOUNTS = [STACK["accounts"][int(number)] for number in os.environ.get("ACCOUNTS", "0,1").split(",")]
MARKET = 1


def options(account):
    return {
        "api_key": account["api_key"],
        "private_key": account["private_key"],
        "budget": 60.0,
    }


def far_bid(market, quantity="0.01"):
    price = round_price(market, from_raw(market["price_band"]["lowest_e18_raw"]), "SHORT")
    return NewOrder(MARKET, "LONG", quantity, price=price)


class Synchronous(unittest.TestCase):
    def setUp(self):
        self.buyer, self.seller = (Client(STACK["base_url"], **options(account)) for account in ACCOUNTS)
        self.addCleanup(self.buyer.close)
        self.addCleanup(self.seller.close)
        self.market = self.buyer.market_data.market(MARKET)

    def test_orders_fill_and_the_position_gets_margin_and_is_closed(self):
        price = round_price(self.market, from_raw(self.market["oracle_price_e18_raw"]), "LONG")
        self.assertTrue(self.buyer.orders.validate(NewOrder(MARKET, "LONG", "0.02", price=price))["valid"])
        bought = self.buyer.orders.place(NewOrder(MARKET, "LONG", "0.02", price=price, leverage=2))
        self.seller.orders.place(NewOrder(MARKET, "SHORT", "0.02", price=price, leverage=2))
        self.assertEqual(self.buyer.orders.wait_for(bought, budget=60)["status"], "FILLED")
        answer = self.buyer.adjustments.add_margin(MARKET, "5")
        query = {"adjustment_id": answer["adjustment_id"], "read_after": answer["read_after"]}
        (attempt,) = self.buyer.adjustments.attempts(**query)["attempts"]
        self.assertEqual((attempt["status"], attempt["amount_e18_raw"]), ("COMMITTED", str(5 * 10**18)))
        (position,) = self.buyer.account.positions(market_id=MARKET, read_after=answer["read_after"])
        size = from_raw(position["size_e18_raw"])
        bid = self.seller.orders.place(NewOrder(MARKET, "LONG", size, price=price, leverage=2))
        closing = self.buyer.orders.close_position(MARKET)
        filled = self.buyer.orders.wait_for(closing, budget=60)["filled_quantity_e18_raw"]
        self.assertEqual(from_raw(filled), size)
        self.seller.orders.wait_for(bid, budget=60)

    def test_a_batch_is_placed_once_and_its_orders_are_cancelled(self):
        request = str(uuid.uuid4())
        orders = [self.buyer.orders.sign(far_bid(self.market)) for _ in range(2)]
        placed = or_raise(self.buyer.orders.place_batch(orders, mode="atomic", client_request_id=request))
        again = self.buyer.orders.place_batch(orders, mode="atomic", client_request_id=request)
        self.assertEqual((placed["accepted"], again["is_duplicate"]), (2, True))
        answer = self.buyer.orders.cancel_batch([order.order_hash for order in orders])
        self.assertEqual([one["order"]["status"] for one in answer["results"]], ["CANCELLED", "CANCELLED"])

    def test_a_refusal_names_the_field(self):
        with self.assertRaises(ClearbatchError) as caught:
            self.buyer.orders.place(NewOrder(MARKET, "LONG", "0.01", price="100", leverage=5000))
        self.assertEqual(caught.exception.outcome, "not_placed")
        self.assertIn(caught.exception.code, ("LEVERAGE_CAP", "PRICE_BAND"))

    def test_the_switch_of_the_account_is_armed_and_disarmed(self):
        self.assertTrue(self.buyer.orders.cancel_all_after(60)["armed"])
        self.assertFalse(self.buyer.orders.cancel_all_after(0)["armed"])

    def test_messages_arrive_without_asyncio(self):
        stream = self.buyer.live.messages("user")
        self.assertEqual(next(stream)["type"], "snapshot")
        placed = self.buyer.live.send(self.buyer.orders.sign(far_bid(self.market)))
        order_id = placed["order"]["order_id"]
        while all(order["order_id"] != order_id for order in next(stream)["data"].get("orders", [])):
            pass
        self.assertTrue(self.buyer.live.cancel(placed["order"]["order_hash"])["cancelled"])
        stream.close()


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def test_a_topic_resumes_after_a_lost_connection_and_the_copy_equals_the_book(self):
        async with AsyncClient(STACK["base_url"], **options(ACCOUNTS[0])) as client:
            market = await client.market_data.market(MARKET)
            book, kinds = LocalBook(), []

            async def follow():
                async for message in client.live.messages(f"market.{MARKET}.book"):
                    kinds.append(message["type"])
                    book.apply(message)

            reader = asyncio.create_task(follow())
            bids = []
            for at in range(6):
                bids.append((await client.orders.place(far_bid(market)))["order"]["order_hash"])
                if at % 2:
                    await client.live.interrupt()
            hit = lambda: [one for one in book.levels("LONG") if int(one["quantity_e18_raw"]) >= 6 * 10**16]  # noqa: E731
            await asyncio.wait_for(until(lambda: client.live.is_current and hit()), 30)
            self.assertEqual(kinds.count("snapshot"), 1)
            await client.orders.cancel_batch(bids)
            reader.cancel()

    async def test_when_the_connection_ends_its_switch_cancels_the_orders(self):
        async with AsyncClient(STACK["base_url"], **options(ACCOUNTS[0])) as client:
            market = await client.market_data.market(MARKET)
            await client.live.cancel_on_disconnect(5)
            placed = await client.live.send(await client.orders.sign(far_bid(market)))
            await client.live.aclose()
            order = await client.orders.wait_for(placed, budget=30)
            self.assertEqual((order["status"], order["status_reason"]), ("CANCELLED", "DEAD_MAN_SWITCH"))

    async def test_an_unknown_topic_and_an_unknown_key_end_the_loop_with_an_error(self):
        for key, topic, code in (
            (None, "market.99.book", "MARKET_NOT_FOUND"),
            ("cb_none", "markets", "API_KEY_UNKNOWN"),
        ):
            async with AsyncClient(STACK["base_url"], api_key=key) as client:
                with self.assertRaises(ClearbatchError) as caught:
                    async for _ in client.live.messages(topic):
                        pass
                self.assertEqual(caught.exception.code, code)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
