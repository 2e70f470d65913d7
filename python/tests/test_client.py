"""Retries and outcomes over a real socket, the sequence of a topic, and the generated files."""

import asyncio
import gzip
import hashlib
import json
import subprocess
import sys
import threading
import unittest
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from clearbatch import AsyncClient, Client, ClearbatchError, LocalBook, SignedOrder, Target, or_raise
from clearbatch.sequence import TopicSequence

ORDER = SignedOrder("0xab", {"signature": "0x01"})
REFUSED = {"message": "no", "details": {"code": "RATE_LIMITED", "outcome": "not_read", "retryable": False}}


class Server:
    """Answers each request with the next of `answers`: (status, body, headers), or None to end the connection unanswered."""

    def __init__(self, *answers):
        self.requests = []
        remaining = list(answers)
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                requests.append((self.path, self.headers.get("authorization"), body, self.headers.get("accept")))
                answer = remaining.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, content, headers = answer
                text = content if isinstance(content, (str, bytes)) else json.dumps(content)
                data = text if isinstance(text, bytes) else text.encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Requests(unittest.TestCase):
    def test_a_lost_answer_is_sent_again_unchanged(self):
        with Server(None, (200, {"order": {}}, {})) as server, Client(server.url, api_key="k") as client:
            client.orders.send(ORDER)
            self.assertEqual(server.requests[0], server.requests[1])
            self.assertEqual(server.requests[0][1], "Key k")

    def test_after_a_lost_answer_no_later_refusal_says_that_the_order_was_not_placed(self):
        with Server(None, (429, REFUSED, {}), (429, REFUSED, {})) as server, Client(server.url) as client:
            for _ in range(2):
                with self.assertRaises(ClearbatchError) as caught:
                    client.orders.send(ORDER)
                self.assertEqual((caught.exception.code, caught.exception.outcome), ("RATE_LIMITED", "unknown"))

    def test_an_error_of_a_proxy_after_the_request_has_an_unknown_outcome(self):
        with Server((502, "bad gateway", {})) as server, Client(server.url, budget=0) as client:
            with self.assertRaises(ClearbatchError) as caught:
                client.orders.send(ORDER)
            self.assertEqual((caught.exception.code, caught.exception.outcome), ("HTTP_502", "unknown"))

    def test_the_announced_pause_is_kept(self):
        busy = (503, {"message": "", "details": {"code": "OVERLOADED", "outcome": "not_placed", "retryable": True}}, {})
        with Server((*busy[:2], {"retry-after": "60"})) as server, Client(server.url, budget=5) as client:
            with self.assertRaises(ClearbatchError) as caught:
                client.orders.send(ORDER)
            self.assertEqual((caught.exception.retry_after, len(server.requests)), (60, 1))

    def test_an_expired_token_is_renewed_once(self):
        tokens = iter(["Bearer old", "Bearer new"])
        refused = (401, {"message": "", "details": {"code": "BEARER_EXPIRED"}}, {})
        with Server(refused, (200, {}, {})) as server, Client(server.url, authorization=lambda: next(tokens)) as client:
            client.account.me()
            self.assertEqual([request[1] for request in server.requests], ["Bearer old", "Bearer new"])

    def test_numbers_are_exact_decimals(self):
        with Server((200, '{"price": 0.1, "count": 3}', {})) as server, Client(server.url) as client:
            self.assertEqual(client.account.me(), {"price": Decimal("0.1"), "count": 3})

    def test_lists_are_read_as_csv(self):
        text = "fill_id,price,builder\r\n1-1-1-7,100.1,terminal\r\n"
        with Server((200, {"user_id": 7}, {}), (200, text, {}), (200, text, {})) as server, Client(
            server.url, address="0x" + "11" * 20
        ) as client:
            self.assertEqual(client.account.fills_csv(market_id=1), text)
            self.assertEqual(client.account.transactions_csv(), text)
            self.assertEqual(
                [(request[0], request[3]) for request in server.requests[1:]],
                [("/v0/fills/by-user/7?market_id=1", "text/csv"), ("/v0/account/transactions", "text/csv")],
            )

    def test_the_ledger_of_builders_is_read_by_label(self):
        with Server((200, {"builders": [], "next_cursor": None}, {})) as server, Client(server.url) as client:
            client.market_data.builders(builder="terminal", limit=2)
            self.assertEqual(server.requests[0][0], "/v0/builders?builder=terminal&limit=2")

    def test_the_equity_is_read_by_interval(self):
        with Server((200, {"equity": [], "next_cursor": None}, {})) as server, Client(server.url) as client:
            client.account.equity(interval="1h", from_="2026-11-22T00:00:00Z")
            self.assertEqual(server.requests[0][0], "/v0/account/equity?interval=1h&from=2026-11-22T00%3A00%3A00Z")

    def test_files_of_the_history_are_listed_page_by_page(self):
        pages = [(200, {"files": [{"day": day}], "next_cursor": cursor}, {}) for day, cursor in (("b", "next"), ("a", None))]
        with Server(*pages) as server, Client(server.url) as client:
            days = [file["day"] for file in client.market_data.history_files(kind="fills")]
            self.assertEqual(days, ["b", "a"])
            self.assertEqual(
                [request[0] for request in server.requests],
                ["/v0/history?kind=fills", "/v0/history?kind=fills&cursor=next"],
            )

    def test_a_file_of_the_history_is_checked_against_its_digests(self):
        content = b"fill_id\r\n1-1-1-0\r\n"
        data = gzip.compress(content, mtime=0)
        tag = {"etag": f'"{hashlib.sha256(data).hexdigest()}"'}
        busy = (503, {"message": "", "details": {"code": "HISTORY_CAPACITY", "retryable": True}}, {"retry-after": "0.01"})
        file = {"path": "/v0/history/fills/1/2026-11-22.csv.gz", "content_sha256": hashlib.sha256(content).hexdigest()}
        with Server(busy, (200, data, tag)) as server, Client(server.url) as client:
            self.assertEqual(client.market_data.history_file(file), data)
            self.assertEqual(server.requests[1][0], file["path"])
        for changed, answer in (
            (file, (200, data, {"etag": '"other"'})),
            (file, (200, data, {})),
            ({**file, "content_sha256": "other"}, (200, data, tag)),
        ):
            with Server(answer) as server, Client(server.url) as client, self.assertRaises(ClearbatchError) as caught:
                client.market_data.history_file(changed)
            self.assertEqual(caught.exception.code, "CLIENT_DIGEST_MISMATCH")

    def test_a_replacement_is_sent_again_unchanged_after_a_lost_answer(self):
        target = Target(client_order_id="quote-1")
        with Server(None, (200, {"order": {}}, {})) as server, Client(server.url) as client:
            self.assertEqual(client.orders.replace(target, ORDER, if_filled="reduce"), {"order": {}})
            self.assertEqual(server.requests[0], server.requests[1])
            path, _, body, _ = server.requests[0]
            self.assertEqual(path, "/v0/orders/replace")
            self.assertEqual(
                json.loads(body),
                {"cancel": {"client_order_id": "quote-1"}, "order": ORDER.body, "if_filled": "reduce"},
            )

    def test_without_if_filled_a_replacement_leaves_the_default_to_the_exchange(self):
        with Server((200, {"order": {}}, {})) as server, Client(server.url) as client:
            client.orders.replace(Target(order_hash="0xcd"), ORDER)
            body = json.loads(server.requests[0][2])
            self.assertEqual(body["cancel"], {"order_hash": "0xcd"})
            self.assertNotIn("if_filled", body)

    def test_after_a_lost_answer_a_refused_replacement_has_an_unknown_outcome(self):
        with Server(None, (429, REFUSED, {})) as server, Client(server.url) as client:
            with self.assertRaises(ClearbatchError) as caught:
                client.orders.replace(Target(order_hash="0xcd"), ORDER)
            self.assertEqual((caught.exception.code, caught.exception.outcome), ("RATE_LIMITED", "unknown"))

    def test_replacements_of_a_batch_keep_their_targets_and_their_request_id(self):
        pairs = [(Target(order_hash="0x01"), ORDER), (Target(client_order_id="two"), ORDER)]
        with Server(None, (200, {"results": []}, {})) as server, Client(server.url) as client:
            client.orders.replace_batch(pairs, mode="atomic", if_filled="refuse")
            self.assertEqual(server.requests[0], server.requests[1])
            body = json.loads(server.requests[0][2])
            self.assertEqual((server.requests[0][0], body["mode"]), ("/v0/orders/replace/batch", "atomic"))
            self.assertTrue(body["client_request_id"])
            self.assertEqual(
                [item["cancel"] for item in body["orders"]], [{"order_hash": "0x01"}, {"client_order_id": "two"}]
            )

    def test_a_target_names_one_order(self):
        for target in (Target(), Target(order_hash="0x01", client_order_id="two")):
            with Server() as server, Client(server.url) as client, self.assertRaises(ValueError):
                client.orders.replace(target, ORDER)
            self.assertEqual(server.requests, [])

    def test_the_asynchronous_client_shares_the_rules(self):
        async def run(url):
            async with AsyncClient(url) as client:
                return await client.orders.send(ORDER)

        with Server(None, (200, {"order": {}}, {})) as server:
            self.assertEqual(asyncio.run(run(server.url)), {"order": {}})

    def test_an_unreachable_exchange_is_an_error_with_an_unknown_outcome(self):
        with Client("http://127.0.0.1:9", budget=0.1) as client, self.assertRaises(ClearbatchError) as caught:
            client.orders.send(ORDER)
        self.assertEqual((caught.exception.code, caught.exception.outcome), ("CLIENT_NO_ANSWER", "unknown"))

    def test_a_batch_with_a_refusal_raises_it(self):
        refused = {"error": {"message": "no margin", "details": {"code": "INSUFFICIENT_MARGIN", "outcome": "not_placed"}}}
        in_doubt = {"error": {"message": "no", "details": {"code": "LEVERAGE_CAP", "outcome": "unknown"}}}
        with self.assertRaises(ClearbatchError) as caught:
            or_raise({"results": [refused, in_doubt]})
        self.assertEqual(caught.exception.outcome, "unknown")
        with self.assertRaises(ClearbatchError) as caught:
            or_raise({"results": [{"order": {}}, refused]})
        self.assertEqual((caught.exception.code, caught.exception.outcome), ("INSUFFICIENT_MARGIN", "placed"))
        self.assertEqual(or_raise({"results": [{"order": {}}]}), {"results": [{"order": {}}]})


def message(kind, seq, prev_seq, **data):
    return {"type": kind, "seq": seq, "prev_seq": prev_seq, "epoch": 1, "data": data}


class Sequence(unittest.TestCase):
    def begun(self):
        sequence = TopicSequence()
        sequence.subscribed(1, False)
        self.assertEqual(sequence.take(message("snapshot", 5, 0)), "apply")
        return sequence

    def test_updates_that_follow_each_other_are_applied(self):
        sequence = self.begun()
        self.assertEqual((sequence.take(message("update", 8, 5)), sequence.position), ("apply", "1:8"))

    def test_a_missing_or_repeated_update_is_a_gap(self):
        for seq, previous in ((9, 8), (5, 4), (5, 5)):
            sequence = self.begun()
            self.assertEqual((sequence.take(message("update", seq, previous)), sequence.position), ("gap", "1:5"))

    def test_a_resumption_in_another_epoch_needs_a_snapshot(self):
        for sequence in (self.begun(), TopicSequence()):
            sequence.restart()
            self.assertEqual((sequence.subscribed(2, True), sequence.position), ("gap", None))

    def test_a_heartbeat_with_a_later_message_lags(self):
        self.assertEqual([self.begun().lags(head) for head in (5, 6)], [False, True])

    def test_a_book_follows_its_messages(self):
        book = LocalBook()
        level = lambda price, quantity: {"price_e18_raw": price, "quantity_e18_raw": quantity}  # noqa: E731
        book.apply(message("snapshot", 1, 0, long_levels=[level("9", "1"), level("10", "1")], short_levels=[]))
        book.apply(
            message("update", 2, 1, long_levels=[level("9", "0"), level("8", "2")], short_levels=[level("11", "1")])
        )
        self.assertEqual([one["price_e18_raw"] for one in book.levels("LONG")], ["10", "8"])
        self.assertEqual(len(book.levels("SHORT", 1)), 1)


class Generated(unittest.TestCase):
    def test_types_and_the_synchronous_client_are_those_of_their_sources(self):
        script = Path(__file__).parents[1] / "generate.py"
        result = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
