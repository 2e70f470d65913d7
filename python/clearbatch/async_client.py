"""The asynchronous client. `client.py` is generated from this file."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Any, Literal, Union
from urllib.parse import quote

import httpx

from . import responses as types
from .async_feed import AsyncLiveFeed
from .decimals import Amount, Side, from_e18, to_e18
from .errors import (
    ClearbatchError,
    CommandAttempts,
    OutcomeMemory,
    error_of_response,
    error_without_response,
    may_retry,
)
from .orders import (
    IfFilled,
    NewOrder,
    OrderType,
    SaltSequence,
    SignedAdjustment,
    SignedOrder,
    Target,
    bracket_orders,
    scale_orders,
    sign_adjustment,
    sign_order,
)
from .signing import PrivateKeySigner, Signer

Authorization = Union[str, Callable[[], Awaitable[str]]]
Query = Mapping[str, Union[str, int, None]]

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_GZIP = "application/gzip"
#: A file that was requested for the first time is built first.
_FILE_BUDGET_S = 300.0


def _bookmark(read_after: types.ReadAfter | None) -> dict[str, str]:
    if read_after is None:
        return {}
    return {"read_after_shard_id": read_after["shard_id"], "read_after_shard_seq": read_after["shard_seq"]}


def _decimal(amount: Amount | None, name: str) -> str | None:
    return None if amount is None else from_e18(to_e18(amount, name))


def _expect_digest(path: str, received: str, expected: str | None) -> None:
    # A proxy that compresses marks the tag as weak.
    if expected is None or expected.removeprefix("W/") != received:
        raise ClearbatchError(
            f"{path} has the digest {received}, expected {expected}", code="CLIENT_DIGEST_MISMATCH", retryable=False
        )


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


class AsyncCredential:
    """Calls the function once and keeps its text until the exchange refuses it. Concurrent requests share one call."""

    def __init__(self, source: Authorization | None) -> None:
        self._source = source
        self._current: str | None = None
        self._lock = asyncio.Lock()

    async def value(self) -> str | None:
        if self._source is None or isinstance(self._source, str):
            return self._source
        async with self._lock:
            if self._current is None:
                self._current = await self._source()
            return self._current

    async def renew(self, refused: str | None) -> bool:
        """Whether there is another credential than the refused one."""
        if self._source is None or isinstance(self._source, str):
            return False
        async with self._lock:
            if self._current == refused:
                self._current = await self._source()
            return self._current != refused


class AsyncHttp:
    """Sends requests and retries those that are safe to retry."""

    def __init__(
        self,
        base_url: str,
        credential: AsyncCredential,
        outcomes: OutcomeMemory,
        timeout: float,
        budget: float,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self._client = httpx.AsyncClient(base_url=base_url.rstrip("/"), timeout=timeout, transport=transport)
        self._credential = credential
        self._outcomes = outcomes
        self._budget = budget

    async def get(self, path: str, query: Query | None = None) -> Any:
        return await self.send("GET", path, query=query)

    async def csv(self, path: str, query: Query | None = None) -> str:
        """The list as a CSV file."""
        return str(await self.send("GET", path, query=query, accept="text/csv"))

    async def file(self, path: str, *, budget: float) -> tuple[bytes, str | None]:
        """The bytes of the file and its tag. `budget`: seconds for it to be made."""
        return await self.send("GET", path, accept=_GZIP, budget=budget)

    async def post(self, path: str, body: Mapping[str, Any], identity: str | None = None) -> Any:
        """For idempotent commands. `identity` is the same for every attempt at the command."""
        return await self.send("POST", path, body=body, identity=identity)

    async def send(
        self,
        method: Literal["GET", "POST", "DELETE"],
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        identity: str | None = None,
        idempotent: bool = True,
        accept: str = "application/json",
        budget: float | None = None,
    ) -> Any:
        deadline = time.monotonic() + (self._budget if budget is None else budget)
        attempts = CommandAttempts(self._outcomes, identity)
        pause, renewed = _FIRST_PAUSE_S, False
        while True:
            authorization = await self._credential.value()
            result = await self._attempt(method, path, query, body, authorization, accept)
            if not isinstance(result, ClearbatchError):
                attempts.succeeded()
                return result
            if result.status == 401 and not renewed and await self._credential.renew(authorization):
                renewed = True
                continue
            error = attempts.failed(result)
            wait = pause if error.retry_after is None else error.retry_after
            if not may_retry(error, idempotent=idempotent) or time.monotonic() + wait > deadline:
                raise error
            await asyncio.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _attempt(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Mapping[str, Any] | None,
        authorization: str | None,
        accept: str,
    ) -> Any:
        headers = {"accept": accept}
        if authorization is not None:
            headers["authorization"] = authorization
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(_present(body)).encode()
        try:
            response = await self._client.request(
                method, path, params=_present(query or {}), content=content, headers=headers
            )
        except httpx.TimeoutException as cause:
            return error_without_response(cause, timed_out=True)
        except httpx.RequestError as cause:
            return error_without_response(cause)
        if response.is_success and accept == _GZIP:
            return response.content, response.headers.get("etag")
        try:
            answer = json.loads(response.text, parse_float=Decimal)
        except ValueError:
            answer = response.text
        if response.is_success:
            return answer
        return error_of_response(response.status_code, answer, response.headers.get("retry-after"))

    async def aclose(self) -> None:
        await self._client.aclose()


class AsyncMarketData:
    """Public reads, which need no API key."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self._known: dict[int, types.Market] = {}

    async def markets(self, *, symbol: str | None = None, type: str | None = None) -> list[types.Market]:
        return await self._http.get("/v0/markets", {"symbol": symbol, "type": type})

    async def market(self, market_id: int) -> types.Market:
        market: types.Market = await self._http.get(f"/v0/markets/{market_id}")
        self._known[market_id] = market
        return market

    async def grid(self, market_id: int) -> types.Market:
        """From memory after the first call: grid, chain and contract of a market never change; prices do."""
        return self._known.get(market_id) or await self.market(market_id)

    async def orderbook(self, market_id: int, *, depth: int | None = None) -> types.Book:
        return await self._http.get(f"/v0/orderbook/by-market/{market_id}", {"depth": depth})

    async def tickers(self) -> list[types.Ticker]:
        return await self._http.get("/v0/tickers")

    async def stats(self) -> list[types.MarketStats]:
        return await self._http.get("/v0/markets/stats")

    async def fills(self, market_id: int, **page: Any) -> types.PublicFills:
        """Both sides of a trade are listed: filter by `side` to count volume once. Pages: `limit`, `cursor`, `from_`, `to`."""
        return await self._http.get(f"/v0/fills/by-market/{market_id}", _page(page))

    async def candles(self, market_id: int, **page: Any) -> types.Candles:
        """`interval` (1m), `price_type`, and a page."""
        return await self._http.get(f"/v0/markets/{market_id}/candlesticks", _page(page))

    async def auctions(self, market_id: int, **page: Any) -> types.Auctions:
        return await self._http.get("/v0/auctions", {"market_id": market_id, **_page(page)})

    async def batch_proof(self, market_id: int, batch_id: int) -> types.BatchProof:
        return await self._http.get(f"/v0/auctions/{market_id}/{batch_id}/proof")

    async def funding_rates(self, market_id: int, **page: Any) -> types.FundingRates:
        return await self._http.get(f"/v0/markets/{market_id}/funding-rates", _page(page))

    async def open_interest(self, market_id: int, **page: Any) -> types.OpenInterest:
        return await self._http.get(f"/v0/markets/{market_id}/open-interest", _page(page))

    async def risk(self, market_id: int) -> types.MarketRisk:
        return await self._http.get(f"/v0/risk/{market_id}")

    async def contracts(self) -> types.SharedContracts:
        return await self._http.get("/v0/contracts/shared")

    async def status(self) -> types.ServiceStatus:
        return await self._http.get("/v0/status")

    async def announcements(self, *, limit: int | None = None, cursor: str | None = None) -> types.Announcements:
        """Announcements of the operator, newest first."""
        return await self._http.get("/v0/announcements", {"limit": limit, "cursor": cursor})

    async def builders(
        self, *, day: str | None = None, builder: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> types.Builders:
        """The builders of a day (UTC; default the current one), largest volume first; with `builder` its days, newest first."""
        query = {"day": day, "builder": builder, "limit": limit, "cursor": cursor}
        return await self._http.get("/v0/builders", query)

    async def history(self, **page: Any) -> types.History:
        """Files of the public history, the newest day first: `kind`, `market_id`, `from_` and `to` (days), `limit`, `cursor`."""
        return await self._http.get("/v0/history", _page(page))

    async def history_files(self, **page: Any) -> AsyncIterator[types.HistoryFile]:
        """All of them, page by page."""
        while True:
            answer = await self.history(**page)
            for file in answer["files"]:
                yield file
            if answer["next_cursor"] is None:
                return
            page["cursor"] = answer["next_cursor"]

    async def history_file(self, file: types.HistoryFile) -> bytes:
        """The compressed file. Its digest must be its tag, and the digest of its content that of the list, if the list has it."""
        data, tag = await self._http.file(file["path"], budget=_FILE_BUDGET_S)
        _expect_digest(file["path"], f'"{hashlib.sha256(data).hexdigest()}"', tag)
        if file["content_sha256"] is not None:
            content = hashlib.sha256(gzip.decompress(data)).hexdigest()
            _expect_digest(file["path"], content, file["content_sha256"])
        return data

    async def time(self) -> types.ServerTime:
        return await self._http.get("/v0/time")


def _page(page: Mapping[str, Any]) -> dict[str, Any]:
    """`from` is a word of Python, so the parameter is `from_`. `read_after` is the bookmark of a write that the read must show."""
    query = {("from" if name == "from_" else name): value for name, value in page.items()}
    bookmark = _bookmark(query.pop("read_after", None))
    return {**query, **bookmark}


class AsyncAccount:
    """Reads of the account."""

    def __init__(self, http: AsyncHttp, address: str | None) -> None:
        self._http = http
        self._address = address
        self._user_id: int | None = None

    @property
    def address(self) -> str:
        if self._address is None:
            raise TypeError("this call needs the option private_key, signer or address")
        return self._address

    async def user_id(self) -> int:
        """Fails with status 404 before the account's first deposit or login."""
        if self._user_id is None:
            self._user_id = int((await self._http.get(f"/v0/users/by-eoa/{self.address}"))["user_id"])
        return self._user_id

    async def me(self) -> types.Me:
        return await self._http.get("/v0/me")

    async def api_keys(self) -> list[types.ApiKey]:
        """All API keys of the account, by name."""
        answer: types.ApiKeys = await self._http.get("/v0/me/api-keys")
        return answer["api_keys"]

    async def revoke_api_key(self, name: str) -> None:
        """At once. After a lost answer, a repetition fails with API_KEY_NOT_FOUND: the key is revoked."""
        await self._http.send("DELETE", f"/v0/me/api-keys/{quote(name, safe='')}")

    async def limits(self) -> types.LimitsAnswer:
        return await self._http.get("/v0/me/limits")

    async def balance(self, *, read_after: types.ReadAfter | None = None) -> types.MarginBalanceBalance:
        path = f"/v0/balance/{await self.user_id()}/margin"
        answer: types.MarginBalance = await self._http.get(path, _bookmark(read_after))
        return answer["balance"]

    async def positions(
        self, *, market_id: int | None = None, read_after: types.ReadAfter | None = None
    ) -> list[types.Position]:
        path = f"/v0/positions/by-user/{await self.user_id()}"
        answer: types.Positions = await self._http.get(path, {"market_id": market_id, **_bookmark(read_after)})
        return answer["positions"]

    async def fills(self, **page: Any) -> types.Fills:
        """Newest first. `market_id`, `side`, and a page."""
        return await self._http.get(f"/v0/fills/by-user/{await self.user_id()}", _page(page))

    async def fills_csv(self, **page: Any) -> str:
        """The same list as CSV with exact decimals: all of it, at most 100,000 fills, unless there is a `limit`."""
        return await self._http.csv(f"/v0/fills/by-user/{await self.user_id()}", _page(page))

    async def order_events(self, **page: Any) -> types.OrderEvents:
        return await self._http.get(f"/v0/users/{await self.user_id()}/order-events", _page(page))

    async def transactions(self, **page: Any) -> types.Transactions:
        return await self._http.get("/v0/account/transactions", _page(page))

    async def transactions_csv(self, **page: Any) -> str:
        """The same list as CSV with exact decimals: all of it, at most 100,000 transactions, unless there is a `limit`."""
        return await self._http.csv("/v0/account/transactions", _page(page))

    async def position_history(self, **page: Any) -> types.PositionHistory:
        return await self._http.get("/v0/account/position-history", _page(page))

    async def pnl(self, **page: Any) -> types.Profits:
        return await self._http.get("/v0/account/pnl", _page(page))

    async def equity(self, **page: Any) -> types.Equity:
        """The equity by interval (`1h` or `1d`), newest first; with `market_id` what the market contributes to it."""
        return await self._http.get("/v0/account/equity", _page(page))


class AsyncOrders:
    """Signs, places, cancels and reads the account's orders."""

    def __init__(
        self,
        http: AsyncHttp,
        account: AsyncAccount,
        market_data: AsyncMarketData,
        signer: Signer | None,
        salts: SaltSequence,
    ) -> None:
        self._http = http
        self._account = account
        self._market_data = market_data
        self._signer = signer
        self._salts = salts

    async def sign(self, order: NewOrder) -> SignedOrder:
        """Signs with the next salt and sends nothing."""
        if self._signer is None:
            raise TypeError("this call needs the option private_key or signer")
        market = await self._market_data.grid(order.market_id)
        return sign_order(market, order, self._signer, self._account.address, self._salts.next(), time.time())

    async def validate(self, order: NewOrder | SignedOrder) -> types.ValidateAnswer:
        """Performs every check of a placement and raises what `send` would raise; places nothing."""
        signed = order if isinstance(order, SignedOrder) else await self.sign(order)
        return await self._http.post("/v0/orders/validate", signed.body)

    async def estimate(
        self,
        market_id: int,
        side: Side,
        *,
        intent: str,
        size: Amount,
        type: OrderType = "MARKET",
        price: Amount | None = None,
        trigger: Amount | None = None,
        leverage: int = 1,
        reduce_only: bool = False,
    ) -> types.Estimate:
        """What the order would cost, the largest quantity accepted now, and what limits it. Places nothing."""
        body = {
            "market_id": market_id,
            "side": side,
            "order_type": type,
            "sizing_intent": intent,
            "size": _decimal(size, "size"),
            "price": _decimal(price, "price"),
            "trigger_price": _decimal(trigger, "trigger"),
            "leverage": leverage,
            "reduce_only": reduce_only,
        }
        return await self._http.post("/v0/orders/estimate", body)

    async def send(self, order: SignedOrder) -> types.PlaceOrderAnswer:
        """Sending the same signed order twice places it once."""
        return await self._http.post("/v0/orders", order.body, f"order {order.order_hash}")

    async def place(self, order: NewOrder) -> types.PlaceOrderAnswer:
        return await self.send(await self.sign(order))

    async def place_batch(
        self,
        orders: Sequence[NewOrder | SignedOrder],
        *,
        mode: Literal["atomic", "best_effort"] = "best_effort",
        client_request_id: str | None = None,
    ) -> types.PlaceBatchAnswer:
        """At most 50 orders. With `best_effort` refusals are results: see `or_raise`."""
        signed = [order if isinstance(order, SignedOrder) else await self.sign(order) for order in orders]
        request = client_request_id or str(uuid.uuid4())
        body = {"client_request_id": request, "mode": mode, "orders": [order.body for order in signed]}
        return await self._http.post("/v0/orders/place/batch", body, f"request {request}")

    async def bracket(
        self,
        entry: NewOrder,
        *,
        take_profit: Amount | None = None,
        stop_loss: Amount | None = None,
        client_request_id: str | None = None,
    ) -> types.PlaceBatchAnswer:
        """An entry with market exits at the triggers, all or none. The exits wait until the entry has matched, and end together."""
        orders = bracket_orders(entry, take_profit, stop_loss)
        return await self.place_batch(orders, mode="atomic", client_request_id=client_request_id)

    async def scale(
        self, terms: NewOrder, *, first: Amount, last: Amount, count: int, client_request_id: str | None = None
    ) -> types.PlaceBatchAnswer:
        """A ladder of limit orders between two prices, all or none. `terms.quantity` is that of all orders together."""
        orders = scale_orders(await self._market_data.grid(terms.market_id), terms, first, last, count)
        return await self.place_batch(orders, mode="atomic", client_request_id=client_request_id)

    async def close_position(self, market_id: int, *, quantity: Amount | None = None) -> types.ClosePositionAnswer | None:
        """
        Closes the position, fills included that are not settled yet, or at most `quantity` of it; None without a position. The auction closes
        at most the position that it finds, and never flips it.
        """
        for position in await self._account.positions(market_id=market_id):
            size = int(position["size_e18_raw"]) + int(position["pending_size_e18_raw"])
            if size != 0:
                side: Side = "SHORT" if size > 0 else "LONG"
                leverage = max(1, int(position["leverage"]))
                most = from_e18(abs(size)) if quantity is None else quantity
                return await self.close(NewOrder(market_id, side, most, leverage=leverage, reduce_only=True))
        return None

    async def close(self, order: NewOrder | SignedOrder) -> types.ClosePositionAnswer:
        """Sends a reduce-only market order of which the quantity is an upper bound. Repeating the same signed order is safe."""
        signed = order if isinstance(order, SignedOrder) else await self.sign(order)
        return await self._http.post("/v0/positions/close", signed.body, f"order {signed.order_hash}")

    async def replace(
        self, target: Target, order: NewOrder | SignedOrder, *, if_filled: IfFilled | None = None
    ) -> types.ReplaceAnswer:
        """Ends an order and accepts another one of the same market and side, or neither. Repeating the same signed order is safe."""
        signed = order if isinstance(order, SignedOrder) else await self.sign(order)
        body = {"cancel": target.body(), "order": signed.body, "if_filled": if_filled}
        return await self._http.post("/v0/orders/replace", body, f"order {signed.order_hash}")

    async def replace_batch(
        self,
        replacements: Sequence[tuple[Target, NewOrder | SignedOrder]],
        *,
        if_filled: IfFilled | None = None,
        mode: Literal["atomic", "best_effort"] = "best_effort",
        client_request_id: str | None = None,
    ) -> types.ReplaceBatchAnswer:
        """At most 50 replacements. With `best_effort` refusals are results: see `or_raise`."""
        orders = []
        for target, order in replacements:
            signed = order if isinstance(order, SignedOrder) else await self.sign(order)
            orders.append({"cancel": target.body(), "order": signed.body, "if_filled": if_filled})
        request = client_request_id or str(uuid.uuid4())
        body = {"client_request_id": request, "mode": mode, "orders": orders}
        return await self._http.post("/v0/orders/replace/batch", body, f"request {request}")

    async def cancel(self, order_hash: str, *, reason: str | None = None) -> types.CancelAnswer:
        path = f"/v0/orders/cancel/by-hash/{order_hash}"
        return await self._http.post(path, {"reason": reason}, f"cancel {order_hash.lower()}")

    async def cancel_by_client_id(self, client_order_id: str, *, reason: str | None = None) -> types.CancelAnswer:
        return await self._http.post(f"/v0/orders/cancel/by-client-id/{client_order_id}", {"reason": reason})

    async def cancel_batch(
        self, order_hashes: Sequence[str], *, reason: str | None = None, client_request_id: str | None = None
    ) -> types.CancelBatchAnswer:
        """At most 100 orders. Each is cancelled or refused alone."""
        request = client_request_id or str(uuid.uuid4())
        body = {"client_request_id": request, "orderHashes": list(order_hashes), "reason": reason}
        return await self._http.post("/v0/orders/cancel/batch", body, f"request {request}")

    async def cancel_all(self, *, market_id: int | None = None, reason: str | None = None) -> types.CancelAllAnswer:
        return await self._http.post("/v0/orders/cancel/all", {"market_id": market_id, "reason": reason})

    async def cancel_all_after(self, seconds: int) -> types.SwitchAnswer:
        """The dead-man switch: the exchange cancels every live order unless this is called again in time. 5 to 900; 0 disarms."""
        return await self._http.post("/v0/orders/cancel/all-after", {"timeout_seconds": seconds})

    async def cancel_switch(self) -> types.SwitchAnswer:
        return await self._http.get("/v0/orders/cancel/all-after")

    async def get(self, order_id: str, *, read_after: types.ReadAfter | None = None) -> types.Order:
        return await self._http.get(f"/v0/orders/{order_id}", _bookmark(read_after))

    async def get_by_hash(self, order_hash: str) -> types.Order:
        return await self._http.get(f"/v0/orders/by-hash/{order_hash}")

    async def get_by_client_id(self, client_order_id: str) -> types.Order:
        return await self._http.get(f"/v0/orders/by-client-id/{client_order_id}")

    async def page(self, **page: Any) -> types.Orders:
        """Newest first. `status`, `market_id`, `side`, and a page."""
        return await self._http.get(f"/v0/orders/by-user/{await self._account.user_id()}", _page(page))

    async def iterate(self, **page: Any) -> AsyncIterator[types.Order]:
        """All orders, one page after another."""
        cursor: str | None = None
        while True:
            answer = await self.page(**{**page, "cursor": cursor})
            for order in answer["orders"]:
                yield order
            cursor = answer["next_cursor"]
            if cursor is None:
                return

    async def fills(self, order_id: str, **page: Any) -> types.Fills:
        return await self._http.get(f"/v0/orders/{order_id}/fills", _page(page))

    async def events(self, order_id: str, **page: Any) -> types.OrderEvents:
        return await self._http.get(f"/v0/orders/{order_id}/events", _page(page))

    async def wait_for(
        self,
        placement: types.PlaceOrderAnswer,
        done: Callable[[types.Order], bool] = lambda order: order["status"] in ("FILLED", "CANCELLED", "EXPIRED"),
        *,
        budget: float = 15.0,
    ) -> types.Order:
        """Polls an order, no earlier than its placement, until `done` is true of it; the default waits for its end."""
        deadline = time.monotonic() + budget
        while True:
            order = await self.get(placement["order"]["order_id"], read_after=placement["read_after"])
            if done(order):
                return order
            if time.monotonic() > deadline:
                raise ClearbatchError(
                    f"order {order['order_id']} is {order['status']} after {budget} s",
                    code="CLIENT_TIMEOUT",
                    outcome="unknown",
                    retryable=True,
                    details={"last": order},
                )
            await asyncio.sleep(0.05)


class AsyncAdjustments:
    """Changes margin and leverage of the account's positions."""

    def __init__(
        self,
        http: AsyncHttp,
        account: AsyncAccount,
        market_data: AsyncMarketData,
        signer: Signer | None,
        nonces: SaltSequence,
    ) -> None:
        self._http = http
        self._account = account
        self._market_data = market_data
        self._signer = signer
        self._nonces = nonces

    async def add_margin(self, market_id: int, amount: Amount) -> types.AdjustMarginAnswer:
        return await self.send(await self.sign_margin(market_id, amount))

    async def remove_margin(
        self, market_id: int, amount: Amount, *, up_to: bool = False, min_amount: Amount = "0"
    ) -> types.AdjustMarginAnswer:
        """The whole amount or nothing; with `up_to` as much as is possible, but refused below `min_amount`."""
        negative = from_e18(-to_e18(amount))
        return await self.send(await self.sign_margin(market_id, negative, up_to=up_to, min_amount=min_amount))

    async def adjust_leverage(
        self,
        market_id: int,
        leverage: int,
        *,
        max_margin_in: Amount | None = None,
        min_margin_out: Amount = "0",
    ) -> types.AdjustLeverageAnswer:
        """Cancels the account's open orders in the market first. Without `max_margin_in` all that is available may be debited."""
        return await self.send(
            await self.sign_leverage(market_id, leverage, max_margin_in=max_margin_in, min_margin_out=min_margin_out)
        )

    async def sign_margin(
        self, market_id: int, amount: Amount, *, up_to: bool = False, min_amount: Amount = "0"
    ) -> SignedAdjustment:
        """A positive amount adds margin, a negative one removes it."""
        value, least = to_e18(amount), to_e18(min_amount, "min_amount")
        values = {"amount": value, "removeMode": 1 if up_to else 0, "minAmount": least}
        body = await self._sign("AdjustMargin", market_id, values)
        terms = {
            "amount": from_e18(value),
            "remove_mode": "up_to" if up_to else "exact",
            "min_amount": from_e18(least),
        }
        return SignedAdjustment("/v0/account/adjust-margin", {**body, **terms})

    async def sign_leverage(
        self,
        market_id: int,
        leverage: int,
        *,
        max_margin_in: Amount | None = None,
        min_margin_out: Amount = "0",
    ) -> SignedAdjustment:
        if max_margin_in is None:
            most = max(0, int((await self._account.balance())["available_e18_raw"]))
        else:
            most = to_e18(max_margin_in, "max_margin_in")
        least = to_e18(min_margin_out, "min_margin_out")
        values = {"leverage": leverage * 10**18, "maxMarginIn": most, "minMarginOut": least}
        body = await self._sign("AdjustLeverage", market_id, values)
        limits = {"max_margin_in_e18_raw": str(most), "min_margin_out_e18_raw": str(least)}
        return SignedAdjustment("/v0/account/adjust-leverage", {**body, "leverage": leverage, **limits})

    async def send(self, adjustment: SignedAdjustment) -> Any:
        """The same request is the same attempt: after a lost answer it is sent again."""
        return await self._http.post(adjustment.path, adjustment.body, f"adjustment {adjustment.body['signature']}")

    async def attempts(self, **page: Any) -> types.Attempts:
        return await self._http.get("/v0/account/adjustment-attempts", _page(page))

    async def _sign(
        self, kind: Literal["AdjustMargin", "AdjustLeverage"], market_id: int, values: Mapping[str, int]
    ) -> dict[str, Any]:
        if self._signer is None:
            raise TypeError("this call needs the option private_key or signer")
        market = await self._market_data.grid(market_id)
        address, nonce = self._account.address, self._nonces.next()
        return sign_adjustment(market, kind, values, self._signer, address, nonce, time.time())


class AsyncClient:
    """
    One account at one exchange. `private_key` is the account's, or `signer` signs for it; with a session key pass the session's key and
    the account's `address`. Without a key, public and read calls remain.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        authorization: Authorization | None = None,
        private_key: str | None = None,
        signer: Signer | None = None,
        address: str | None = None,
        salts: SaltSequence | None = None,
        timeout: float = 10.0,
        budget: float = 15.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if api_key is not None and authorization is not None:
            raise TypeError("pass api_key or authorization, not both")
        if private_key is not None and signer is not None:
            raise TypeError("pass private_key or signer, not both")
        credential = AsyncCredential(authorization if api_key is None else f"Key {api_key}")
        chosen: Signer | None = PrivateKeySigner(private_key) if private_key is not None else signer
        outcomes = OutcomeMemory()
        self._http = AsyncHttp(base_url, credential, outcomes, timeout, budget, transport)
        own = address or (None if chosen is None else chosen.address)
        numbers = salts or SaltSequence()
        self.market_data = AsyncMarketData(self._http)
        self.account = AsyncAccount(self._http, own)
        self.orders = AsyncOrders(self._http, self.account, self.market_data, chosen, numbers)
        self.adjustments = AsyncAdjustments(self._http, self.account, self.market_data, chosen, numbers)
        self.live = AsyncLiveFeed(base_url, credential.value, credential.renew, outcomes, budget)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self.live.aclose()
        await self._http.aclose()
