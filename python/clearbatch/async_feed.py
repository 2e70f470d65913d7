"""The live feed for asyncio: topics that resume after a lost connection, commands, and the dead-man switch of the connection."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

import websockets

from . import responses as types
from .errors import (
    CLOSED,
    TOO_SLOW,
    ClearbatchError,
    CommandAttempts,
    OutcomeMemory,
    error_of_response,
    error_without_response,
    may_retry,
)
from .orders import SignedOrder
from .sequence import TopicSequence, Verdict

Message = dict[str, Any]

_SILENCE_S = 20.0
_CALL_S = 10.0
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 10.0
_MOST_WAITING = 10_000


class _Reader:
    """Messages that wait for one reader of a topic, or the error that ends it."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Message | ClearbatchError] = asyncio.Queue()

    def put(self, item: Message | ClearbatchError) -> None:
        if self._queue.qsize() == _MOST_WAITING:
            text = f"more than {_MOST_WAITING} messages wait to be read; read them faster"
            self._queue.put_nowait(ClearbatchError(text, code=TOO_SLOW, retryable=True))
        elif self._queue.qsize() < _MOST_WAITING:
            self._queue.put_nowait(item)

    async def get(self) -> Message:
        item = await self._queue.get()
        if isinstance(item, ClearbatchError):
            raise item
        return item


class _Topic:
    def __init__(self) -> None:
        self.sequence = TopicSequence()
        self.readers: set[_Reader] = set()
        #: Of the operation that the next `subscribed` answers.
        self.operation: int | None = None
        self.retries = 0
        self.timer: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.operation = None
        self.sequence.restart()


class AsyncLiveFeed:
    """Connects at the first use and again whenever the connection is lost, until it is closed."""

    def __init__(
        self,
        base_url: str,
        credential: Callable[[], Awaitable[str | None]],
        renew: Callable[[str | None], Awaitable[bool]],
        outcomes: OutcomeMemory,
        budget: float = 15.0,
    ) -> None:
        self._url = re.sub(r"^http", "ws", base_url.rstrip("/")) + "/v0/ws"
        self._credential = credential
        self._renew = renew
        self._outcomes = outcomes
        self._budget = budget
        self._topics: dict[str, _Topic] = {}
        self._calls: dict[int, asyncio.Future[Message]] = {}
        self._ids = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._socket: Any = None
        self._connected = asyncio.Event()
        self._refused: ClearbatchError | None = None
        self._delay: float | None = None

    # ------------------------------------------------------------------ for programs

    @property
    def is_current(self) -> bool:
        """Whether every topic has reached its present state, as far as this client has received it."""
        return all(topic.sequence.is_current for topic in self._topics.values())

    async def messages(self, name: str) -> AsyncIterator[Message]:
        """
        The topic's snapshot and every message after it, such as `market.1.book`, `market.1.trades` or `user`. No message comes twice, and
        none is left out without a snapshot after it. Leaving the loop ends the subscription.
        """
        self._start()
        reader = _Reader()
        topic = self._topics.setdefault(name, _Topic())
        topic.readers.add(reader)
        topic.sequence.forget()
        await self._join(name)
        try:
            if self._refused is not None:
                raise self._refused
            while True:
                yield await reader.get()
        finally:
            topic.readers.discard(reader)
            if not topic.readers and self._topics.get(name) is topic:
                topic.stop()
                del self._topics[name]
                if self._socket is not None:
                    with contextlib.suppress(ClearbatchError):
                        await self._send("unsubscribe", {"topics": [name]})

    async def cancel_on_disconnect(self, grace_seconds: int) -> None:
        """
        The exchange cancels every live order of the account this long after this connection ends; 0 turns it off. It ends with its
        connection: call it again after a lost one.
        """
        await self.call("cancel_on_disconnect", {"grace_seconds": grace_seconds})

    async def send(self, order: SignedOrder) -> types.PlaceOrderAnswer:
        """Places over the connection. Sending the same signed order again, here or over REST, places it once."""
        return await self._command("place", order.body, f"order {order.order_hash}")

    async def cancel(self, order_hash: str) -> types.CancelAnswer:
        return await self._command("cancel", {"order_hash": order_hash}, f"cancel {order_hash.lower()}")

    async def cancel_all(self, *, market_id: int | None = None) -> types.CancelAllAnswer:
        return await self._command("cancel_all", {} if market_id is None else {"market_id": market_id})

    async def interrupt(self) -> bool:
        """Ends the present connection as a failure of the network would; the next one follows."""
        if self._socket is None:
            return False
        await self._socket.close()
        return True

    async def aclose(self) -> None:
        if self._task is None:
            return
        self._refuse(ClearbatchError("the feed is closed", code=CLOSED))
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    # ------------------------------------------------------------------ commands

    async def call(self, operation: str, fields: Mapping[str, Any]) -> Message:
        """Sends one operation and returns its answer; waits for a connection first."""
        self._start()
        try:
            await asyncio.wait_for(self._connected.wait(), _CALL_S)
        except asyncio.TimeoutError as cause:
            raise self._refused or error_without_response(cause, timed_out=True) from None
        if self._refused is not None:
            raise self._refused
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        number = next(self._ids)
        self._calls[number] = answer
        try:
            await self._send(operation, fields, number)
            message = await asyncio.wait_for(answer, _CALL_S)
        except asyncio.TimeoutError as cause:
            raise error_without_response(cause, timed_out=True) from None
        finally:
            self._calls.pop(number, None)
        if message["type"] == "error":
            raise _error_of(message)
        return message

    async def _command(self, operation: str, body: Mapping[str, Any], identity: str | None = None) -> Any:
        attempts = CommandAttempts(self._outcomes, identity)
        deadline, pause = time.monotonic() + self._budget, 0.05
        while True:
            try:
                answer = await self.call(operation, {"body": dict(body)})
                attempts.succeeded()
                return answer["data"]
            except ClearbatchError as failure:
                error = attempts.failed(failure)
                wait = pause if error.retry_after is None else error.retry_after
                if not may_retry(error, idempotent=True) or time.monotonic() + wait > deadline:
                    raise error from failure
            await asyncio.sleep(wait)
            pause = min(2 * pause, 2.0)

    # ------------------------------------------------------------------ the connection

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _send(self, operation: str, fields: Mapping[str, Any], number: int | None = None) -> int:
        own = next(self._ids) if number is None else number
        try:
            await self._socket.send(json.dumps({"op": operation, "id": own, **fields}))
        except (websockets.ConnectionClosed, AttributeError) as cause:
            raise error_without_response(cause) from None
        return own

    async def _run(self) -> None:
        attempts, renewed = 0, False
        try:
            while self._refused is None:
                authorization: str | None = None
                try:
                    async with websockets.connect(self._url, max_size=None, open_timeout=_CALL_S) as socket:
                        authorization = await self._credential()
                        await self._authenticate(socket, authorization)
                        attempts, renewed = 0, False
                        await self._receive_all(socket)
                except ClearbatchError as error:
                    if error.status == 401 and not renewed and await self._renewed(authorization):
                        renewed = True
                    elif not error.retryable:
                        self._refuse(error)
                except (OSError, asyncio.TimeoutError, websockets.WebSocketException):
                    pass
                finally:
                    self._dropped()
                longest = min(_FIRST_DELAY_S * 2**attempts, _LONGEST_DELAY_S)
                attempts = min(attempts + 1, 10)
                delay = self._delay if self._delay is not None else longest * random.uniform(0.5, 1)
                self._delay = None
                await asyncio.sleep(delay)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # A reader must not wait for a feed that has ended.
            self._refuse(error_without_response(error))
        finally:
            self._dropped()

    async def _renewed(self, refused: str | None) -> bool:
        try:
            return await self._renew(refused)
        except Exception:
            return True

    async def _authenticate(self, socket: Any, authorization: str | None) -> None:
        if authorization is not None:
            await socket.send(json.dumps({"op": "auth", "id": "auth", "authorization": authorization}))
            while True:
                message = _parse(await asyncio.wait_for(socket.recv(), _CALL_S))
                if message.get("id") == "auth":
                    break
            if message["type"] == "error":
                raise _error_of(message)
        self._socket = socket
        self._connected.set()
        for name in list(self._topics):
            await self._join(name)

    async def _receive_all(self, socket: Any) -> None:
        while True:
            self._receive(_parse(await asyncio.wait_for(socket.recv(), _SILENCE_S)))

    def _refuse(self, error: ClearbatchError) -> None:
        self._refused = error
        self._connected.set()
        for topic in self._topics.values():
            for reader in topic.readers:
                reader.put(error)

    def _dropped(self) -> None:
        self._socket = None
        if self._refused is None:
            self._connected.clear()
        for topic in self._topics.values():
            topic.stop()
        for answer in self._calls.values():
            if not answer.done():
                answer.set_exception(error_without_response("disconnected"))

    # ------------------------------------------------------------------ topics

    async def _join(self, name: str) -> None:
        topic = self._topics.get(name)
        if topic is None:
            return
        topic.stop()
        if self._socket is None:
            return
        position = topic.sequence.position
        since = {} if position is None else {"since": {name: position}}
        topic.operation = next(self._ids)
        try:
            await self._send("subscribe", {"topics": [name], **since}, topic.operation)
        except ClearbatchError:
            return  # The next connection joins every topic.

    def _join_later(self, name: str, topic: _Topic) -> None:
        topic.stop()
        longest = min(_FIRST_DELAY_S * 2**topic.retries, _LONGEST_DELAY_S)
        topic.retries = min(topic.retries + 1, 10)
        loop = asyncio.get_running_loop()
        delay = longest * random.uniform(0.5, 1)
        topic.timer = loop.call_later(delay, lambda: loop.create_task(self._join(name)))

    def _receive(self, message: Message) -> None:
        kind, answer = message.get("type"), self._calls.get(message.get("id"))  # type: ignore[arg-type]
        if answer is not None:
            if not answer.done():
                answer.set_result(message)
        elif kind == "server_shutdown":
            self._delay = message["data"]["reconnect_after_ms"] / 1000
        elif kind == "heartbeat":
            for name, head in message["data"]["topics"].items():
                topic = self._topics.get(name)
                if topic is not None and topic.sequence.lags(head):
                    self._join_later(name, topic)
        else:
            name = str(message.get("topic"))
            topic = self._topics.get(name)
            if topic is not None:
                self._receive_of(name, topic, message)

    def _receive_of(self, name: str, topic: _Topic, message: Message) -> None:
        kind, verdict = message["type"], "ignore"
        if kind == "error" and message.get("id") == topic.operation:
            error = _error_of(message)
            if error.retryable or error.status >= 500:
                self._join_later(name, topic)
            else:
                topic.stop()
                for reader in topic.readers:
                    reader.put(error)
        elif kind == "subscribed" and message.get("id") == topic.operation:
            data = message["data"]
            verdict = topic.sequence.subscribed(data["epoch"], data["resumed"])
        elif kind in ("snapshot", "update"):
            verdict = self._deliver(topic, message)
        if verdict == "gap":
            self._join_later(name, topic)

    @staticmethod
    def _deliver(topic: _Topic, message: Message) -> Verdict:
        verdict = topic.sequence.take(message)
        if verdict == "apply":
            topic.retries = 0
            for reader in topic.readers:
                reader.put(message)
        return verdict


def _parse(text: str | bytes) -> Message:
    message = json.loads(text, parse_float=Decimal)
    return message if isinstance(message, dict) else {}


def _error_of(message: Message) -> ClearbatchError:
    data = dict(message["data"])
    status, retry_after = data.pop("status"), data.pop("retry_after", None)
    return error_of_response(status, data, None if retry_after is None else str(retry_after))
