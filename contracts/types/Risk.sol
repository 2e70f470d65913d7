// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice Who inherits what the book did not take, and how much of it. One slot; all zero: nobody.
struct RiskTerms {
    address backstop;
    /// Highest notional that the backstop's position may reach by inheriting, in wei at the oracle price.
    uint96 backstopCap;
}

/// @notice Why the backstop did not inherit.
enum InheritanceFailure {
    None,
    NoBackstop,
    CapExceeded,
    FreeBalanceShort
}

/// @notice What the backstop would hold and pay, and why not.
struct Inheritance {
    /// Change of the backstop's free balance.
    int256 freeDelta;
    InheritanceFailure failure;
    /// Of the failure, in wei: notional or free balance.
    uint256 needed;
    uint256 available;
}

/// @notice What positions of a market are measured with. `…X` is wei x 1e18.
struct Valuation {
    /// Oracle price of one step.
    uint256 oracleStepX;
    uint256 step;
    bool binary;
    /// Millionths.
    uint256 imr;
    uint256 mmr;
}

/// @notice What an action was done at: with it, logs alone rebuild funding and reference.
struct ActionTerms {
    /// Milliseconds.
    uint48 asOf;
    uint96 oraclePrice;
    uint48 observedAt;
    int96 fundingIndex;
}

/// @notice One counterparty's share of a deleveraging; no steps: it did not qualify, or nothing was left.
struct DeleveragedLeg {
    address counterparty;
    uint48 steps;
    /// Into its free balance. The account's receives nothing.
    uint96 payout;
}
