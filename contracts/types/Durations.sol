// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

// Protocol durations in milliseconds, like `asOf`.

// A cancel, a revocation or a withdrawal request applies to batches with `asOf` > request time + CANCEL_GRACE. Orders that were
// matched before the request was seen can therefore still settle.
uint256 constant CANCEL_GRACE = 5_000;
// An action reverts if block time > `asOf` + ACTION_LIFETIME: a broadcast action is settled or provably dead after it.
uint256 constant ACTION_LIFETIME = 10_000;
// Maximum of `asOf` - block time, and of a report's time - `asOf`.
uint256 constant AHEAD = 2_000;
// Time between the announcement of new parameters, or of the close of a market, and the earliest moment they apply; and between
// the announcement of a later expiry and the expiry that it replaces.
uint256 constant NOTICE = 86_400_000;
// Time without an action or heartbeat, counted from a freeze request, after which any account can freeze the market.
uint256 constant SILENCE = 86_400_000;
// Maximum time from a market's deployment to its expiry: ten years.
uint256 constant MAX_LIFE = 315_576_000_000;
// Bounds of the time in which a final report can be replaced. On a test chain the lower bound is a second.
uint256 constant MIN_DISPUTE_WINDOW = 86_400_000;
uint256 constant MAX_DISPUTE_WINDOW = 1_209_600_000;
// Maximum by which an extended expiry may be later than the listed one.
uint256 constant MAX_EXPIRY_EXTENSION = 2_592_000_000;
// Time after the close of a market in which the first final report must be submitted. After it, any account can freeze a market
// that has no final report.
uint256 constant FINAL_REPORT_TIME = 604_800_000;
// Time after the end of a market in which insolvent accounts can be reported; claims start after it.
uint256 constant INSOLVENCY_WINDOW = 259_200_000;
// If a pause of the bank begins before the haircut is fixed, claims start at the earliest this long after the end of the pause,
// so that the deficit can be covered. They start at most 3 days (window) + 3 days (pause) + COVER_TIME after the end.
uint256 constant COVER_TIME = 86_400_000;
// Time after a pause of the bank in which no account with equity is liquidated, so that owners can add margin first. A
// constant: no role can shorten it, and a pause stops all markets at once. Ten minutes suffice to sign, send and mine an
// addition on a busy chain, and expose the other accounts of a market to few moves of the price.
uint256 constant PAUSE_GRACE = 600_000;
