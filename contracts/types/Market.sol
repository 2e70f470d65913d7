// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

enum MarketKind {
    Perpetual,
    Future,
    BinaryFuture
}

/// @notice Modes of a market, each stricter than the one before. `ActionLib` defines the actions that each mode allows.
enum MarketMode {
    Open,
    CancelOnly,
    Halted,
    Settling,
    Settled
}

/// @notice The exchange proposes an operator, and the operator accepts.
enum OperatorStatus {
    None,
    Proposed,
    Approved
}

/// @notice The terms of a market as listed: increments, feeds, expiry and final price range. They never change; `Ending` has the
/// expiry and the dispute window in force.
struct MarketGrid {
    uint256 marketId;
    MarketKind kind;
    /// Price increment and quantity increment, x 1e18.
    uint256 tick;
    uint256 step;
    /// Oracle feed of the market's price.
    bytes32 feedId;
    /// Oracle feed of the market's session: funding stops when the session ends. 0: the market has no sessions.
    bytes32 sessionFeedId;
    /// Oracle feed of the final price; 0 for a perpetual, which ends at a price of `feedId`.
    bytes32 finalFeedId;
    /// Bounds of the final price x 1e18; both 0 for a perpetual. A binary market ends at exactly one of them: 0 or 1e18.
    uint96 finalLow;
    uint96 finalHigh;
    /// Milliseconds; 0 for a perpetual.
    uint48 expiresAt;
    /// Milliseconds from the first final report, in which another report can replace it.
    uint48 disputeWindow;
}

/// @notice The parameters of a market that can change, within the bounds of `ListingLib`. One slot. Fractions are millionths.
struct Parameters {
    /// Initial and maintenance margin requirement, of the notional at the oracle price.
    uint24 imr;
    uint24 mmr;
    /// Price band around the oracle price.
    uint24 mtbLong;
    uint24 mtbShort;
    /// Maximum fee rates of a batch: fractions of notional, or the coefficients of the binary formula.
    uint24 makerFee;
    uint24 takerFee;
    /// Maximum age of a report at `asOf`, in milliseconds.
    uint16 reportMaxAge;
    /// Maximum move from the last report that an action used (`BandLib.allowedMove`): `moveBase` becomes available in proportion
    /// to the time since that report, all of it after `moveWindow` milliseconds; `moveSlope` is added per second. Both are
    /// fractions of the price; in a binary market of max(price, 1 - price), and they must add up to 1 within 30 minutes.
    uint24 moveBase;
    uint24 moveSlope;
    uint16 moveWindow;
    /// Maximum absolute funding rate per hour, as a fraction of the oracle price; 0: the market has no funding.
    uint16 fundingCap;
    uint8 maxLeverage;
    MarketMode mode;
}
