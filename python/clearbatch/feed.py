"""The live feed for programs without asyncio: the asynchronous one, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from . import responses as types
from .async_feed import AsyncLiveFeed, Message
from .errors import OutcomeMemory
from .orders import SignedOrder

Result = TypeVar("Result")


class LiveFeed:
    """See `AsyncLiveFeed`."""

    def __init__(
        self,
        base_url: str,
        credential: Callable[[], str | None],
        renew: Callable[[str | None], bool],
        outcomes: OutcomeMemory,
        budget: float = 15.0,
    ) -> None:
        async def value() -> str | None:
            return await asyncio.to_thread(credential)

        async def renewed(refused: str | None) -> bool:
            return await asyncio.to_thread(renew, refused)

        async def create() -> AsyncLiveFeed:
            return AsyncLiveFeed(base_url, value, renewed, outcomes, budget)

        self._create = create
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._feed: AsyncLiveFeed | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_current(self) -> bool:
        return self._feed is None or self._feed.is_current

    def messages(self, name: str) -> Iterator[Message]:
        """Waits for the next message of the topic. Leaving the loop ends the subscription."""
        stream = self._started().messages(name)
        try:
            while True:
                yield self._run(stream.__anext__())
        finally:
            if self._loop is not None:
                self._run(stream.aclose())  # type: ignore[attr-defined]

    def cancel_on_disconnect(self, grace_seconds: int) -> None:
        self._run(self._started().cancel_on_disconnect(grace_seconds))

    def send(self, order: SignedOrder) -> types.PlaceOrderAnswer:
        return self._run(self._started().send(order))

    def cancel(self, order_hash: str) -> types.CancelAnswer:
        return self._run(self._started().cancel(order_hash))

    def cancel_all(self, *, market_id: int | None = None) -> types.CancelAllAnswer:
        return self._run(self._started().cancel_all(market_id=market_id))

    def interrupt(self) -> bool:
        return self._feed is not None and self._run(self._feed.interrupt())

    def close(self) -> None:
        with self._lock:
            loop, feed, thread = self._loop, self._feed, self._thread
            self._loop = self._feed = self._thread = None
        if loop is None or feed is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(feed.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _started(self) -> AsyncLiveFeed:
        with self._lock:
            if self._feed is None or self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="clearbatch feed", daemon=True)
                thread.start()
                self._feed = asyncio.run_coroutine_threadsafe(self._create(), loop).result()
                self._loop, self._thread = loop, thread
            return self._feed

    def _run(self, work: Coroutine[Any, Any, Result] | Any) -> Result:
        loop = self._loop
        if loop is None:
            raise RuntimeError("the feed is closed")

        async def run() -> Result:
            return await work

        future = asyncio.run_coroutine_threadsafe(run(), loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
