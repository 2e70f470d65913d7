"""The error that every failed request raises, and the outcome of a command over all of its attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

#: Whether the command took effect. After `unknown`, only the same command may be sent again. `not_read`: the request was refused before its
#: command was read, for example by a rate limit; it changed nothing, and nothing is known of attempts by other programs.
Outcome = Literal["not_placed", "not_read", "placed", "unknown"]

STALE_BOOKMARK = "HTV1_READ_AFTER_STALE_BOOKMARK"
NO_ANSWER = "CLIENT_NO_ANSWER"
TIMEOUT = "CLIENT_TIMEOUT"
CLOSED = "CLIENT_CLOSED"
TOO_SLOW = "CLIENT_TOO_SLOW"

_CERTAINTY = {"not_read": 0, "not_placed": 0, "unknown": 1, "placed": 2}


def most_certain(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome that says most of what was executed, for example of the items of a batch."""
    return max(outcomes, key=lambda outcome: _CERTAINTY[outcome])


class ClearbatchError(Exception):
    """A refused or unanswered request. Every code that does not begin with `CLIENT_` or `HTTP_` is the exchange's."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str,
        outcome: Outcome | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        #: HTTP status; 0 without an answer.
        self.status = status
        self.code = code
        #: None for a read, which has no effect.
        self.outcome = outcome
        self.retryable = retryable
        #: Seconds.
        self.retry_after = retry_after
        self.details: Mapping[str, Any] = details or {}

    @property
    def request_id(self) -> str | None:
        value = self.details.get("request_id")
        return value if isinstance(value, str) else None

    def with_outcome(self, outcome: Outcome) -> ClearbatchError:
        known = ClearbatchError(
            self.message,
            status=self.status,
            code=self.code,
            outcome=outcome,
            retryable=self.retryable,
            retry_after=self.retry_after,
            details=self.details,
        )
        known.__cause__ = self.__cause__ or self
        return known

    def __str__(self) -> str:
        known = {name: self.details[name] for name in ("field", "received", "expected") if name in self.details}
        facts = [self.code, *(f"{name} {value}" for name, value in known.items())]
        if self.outcome is not None:
            facts.append(f"outcome {self.outcome}")
        return f"{self.message} ({', '.join(facts)})"


def error_of_response(status: int, body: object, retry_after: str | None) -> ClearbatchError:
    """
    An error of the exchange without an outcome is an error of a read. An error without a code comes from another server on the path: its
    outcome is `unknown` for status 408 and 5xx, and `not_read` for every other status.
    """
    shape = body if isinstance(body, dict) else {}
    message = shape.get("message")
    details = shape.get("details")
    details = details if isinstance(details, dict) else {}
    code = details.get("code")
    outcome: Outcome | None = None
    if details.get("outcome") in _CERTAINTY:
        outcome = details["outcome"]
    elif not isinstance(code, str):
        outcome = "unknown" if status == 408 or status >= 500 else "not_read"
    retryable = details.get("retryable")
    return ClearbatchError(
        message if isinstance(message, str) else f"HTTP {status}",
        status=status,
        code=code if isinstance(code, str) else f"HTTP_{status}",
        outcome=outcome,
        retryable=retryable if isinstance(retryable, bool) else status == 429 or status >= 500,
        retry_after=_seconds(retry_after),
        details=details,
    )


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 86_400 else None


def error_without_response(cause: BaseException | str, *, timed_out: bool = False) -> ClearbatchError:
    """The exchange may or may not have received the request."""
    error = ClearbatchError(
        "no response within the time limit" if timed_out else f"no response: {cause or type(cause).__name__}",
        code=TIMEOUT if timed_out else NO_ANSWER,
        outcome="unknown",
        retryable=True,
    )
    if isinstance(cause, BaseException):
        error.__cause__ = cause
    return error


class OutcomeMemory:
    """Commands that were placed or may have been, by their identity; the oldest are forgotten."""

    SIZE = 10_000

    def __init__(self) -> None:
        self._outcomes: dict[str, Outcome] = {}

    def earlier(self, identity: str | None) -> Outcome:
        return "not_read" if identity is None else self._outcomes.get(identity, "not_read")

    def note(self, identity: str | None, outcome: Outcome | None) -> None:
        if identity is None or outcome is None or _CERTAINTY[outcome] == 0:
            return
        earlier = self.earlier(identity)
        self._outcomes.pop(identity, None)
        self._outcomes[identity] = outcome if _CERTAINTY[outcome] > _CERTAINTY[earlier] else earlier
        if len(self._outcomes) > self.SIZE:
            self._outcomes.pop(next(iter(self._outcomes)), None)


class CommandAttempts:
    """One command, from its first attempt on: once it may have been executed, no later error says that it was not."""

    def __init__(self, memory: OutcomeMemory, identity: str | None) -> None:
        self._memory = memory
        self._identity = identity
        self._earlier = memory.earlier(identity)

    def succeeded(self) -> None:
        self._memory.note(self._identity, "placed")

    def failed(self, error: ClearbatchError) -> ClearbatchError:
        known = error
        if error.outcome is not None and _CERTAINTY[error.outcome] < _CERTAINTY[self._earlier]:
            known = error.with_outcome(self._earlier)
        self._earlier = known.outcome or self._earlier
        self._memory.note(self._identity, known.outcome)
        return known


def may_retry(error: ClearbatchError, *, idempotent: bool) -> bool:
    """A stale bookmark stays stale. After an unknown outcome only an idempotent request is sent again."""
    if error.code == STALE_BOOKMARK or not error.retryable:
        return False
    return idempotent or error.outcome in ("not_placed", "not_read")
