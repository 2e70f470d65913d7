"""Retries and outcomes over a real socket, the sequence of a topic, and the generated files."""

import asyncio
import json
import subprocess
import sys
import threading
import unittest
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from clearbatch import AsyncClient, Client, ClearbatchError, LocalBook, SignedOrder, or_raise
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
                requests.append((self.path, self.headers.get("authorization"), body))
                answer = remaining.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, content, headers = answer
                data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
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
