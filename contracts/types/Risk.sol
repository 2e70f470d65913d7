// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice The market's backstop and its cap. One slot; all zero: no backstop.
struct RiskTerms {
    address backstop;
    /// Maximum notional of the backstop's position after an inheritance, in wei at the oracle price.
    uint96 backstopCap;
}

/// @notice Reason why the backstop did not inherit.
enum InheritanceFailure {
    None,
    NoBackstop,
    CapExceeded,
    FreeBalanceShort
}

/// @notice Result of an inheritance.
struct Inheritance {
    /// Change of the backstop's free balance.
    int256 freeDelta;
    InheritanceFailure failure;
    /// Amounts of the failure in wei: notional or free balance.
    uint256 needed;
    uint256 available;
}

/// @notice Oracle price and requirements for the valuation of positions. `…X` is wei x 1e18.
struct Valuation {
    /// Oracle price of one step.
    uint256 oracleStepX;
    uint256 step;
    bool binary;
    /// Millionths.
    uint256 imr;
    uint256 mmr;
}

/// @notice Terms of an action in its event, so that funding index and last report can be rebuilt from logs.
struct ActionTerms {
    /// Milliseconds.
    uint48 asOf;
    uint96 oraclePrice;
    uint48 observedAt;
    int96 fundingIndex;
}

/// @notice One counterparty's share of a deleveraging. 0 steps: it did not qualify, or nothing was left to close.
struct DeleveragedLeg {
    address counterparty;
    /// As wide as a position's size.
    uint64 steps;
    /// Credit to the counterparty's free balance. The account in liquidation receives nothing.
    uint96 payout;
}
