// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

enum MarketKind {
    Perpetual,
    Future,
    BinaryFuture
}

/// @notice From open to ended, each stricter than the one before. What each lets happen: `ActionLib`.
enum MarketMode {
    Open,
    CancelOnly,
    Halted,
    Settling,
    Settled
}

/// @notice An operator is proposed by the exchange, and accepts.
enum OperatorStatus {
    None,
    Proposed,
    Approved
}

/// @notice What never changes in a market: its grid and its sources.
struct MarketGrid {
    uint256 marketId;
    MarketKind kind;
    /// Price increment and quantity increment, x 1e18.
    uint256 tick;
    uint256 step;
    /// Which feed of the oracle prices this market.
    bytes32 feedId;
    /// The feed that tells whether the market's session runs, so that funding stops with it; 0: it runs around the clock.
    bytes32 sessionFeedId;
    /// Bounds of a final price x 1e18; both 0 for a perpetual. A binary market ends at exactly one of them: 0 or 1e18.
    uint96 finalLow;
    uint96 finalHigh;
}

/// @notice What may change, within bounds written in code. One storage slot. Fractions are in millionths (1e-6).
struct Parameters {
    /// Initial and maintenance margin requirement, of the notional at the oracle price.
    uint24 imr;
    uint24 mmr;
    /// Price band around the oracle price.
    uint24 mtbLong;
    uint24 mtbShort;
    /// Highest rates that a batch may charge: of notional, or the coefficients of the binary formula.
    uint24 makerFee;
    uint24 takerFee;
    /// Oldest report that a batch may use, in milliseconds before its `asOf`.
    uint24 reportMaxAge;
    /// A report may differ from the one used before by `moveBase + moveSlope * seconds elapsed`.
    uint24 moveBase;
    uint24 moveSlope;
    /// Largest funding rate either way, of the oracle price and per hour; 0: the market has no funding.
    uint24 fundingCap;
    uint8 maxLeverage;
    MarketMode mode;
}
