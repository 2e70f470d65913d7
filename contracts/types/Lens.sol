// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketMode, Parameters} from "./Market.sol";
import {Position} from "./Position.sol";

/// @notice Terms of a market that an action with a given `asOf` would find.
struct MarketTerms {
    /// In force, including scheduled changes that are due, and the expiry.
    MarketMode mode;
    Parameters parameters;
    /// Includes funding up to `asOf`, but not beyond the close.
    int256 fundingIndex;
    /// Milliseconds; 0: no close is scheduled.
    uint256 closesAt;
    /// Milliseconds: before it no account with equity is liquidated, inherited or deleveraged (`PauseLib`).
    uint256 graceEndsAt;
    /// Zero: there is none.
    address backstop;
}

/// @notice One account at an oracle price. `...X` is wei x 1e18.
struct AccountRisk {
    address account;
    /// `margin` includes funding up to `asOf`.
    Position position;
    /// Free balance at the bank.
    uint256 free;
    int256 equityX;
    uint256 notionalX;
    /// A forced order may close it: ratio below MMR plus the liquidation buffer, and no equity left or the grace after a pause of
    /// the bank over.
    bool liquidatable;
    /// The backstop may inherit it: likewise with a ratio below MMR, and not the backstop itself.
    bool inheritable;
    /// The oracle price at or below which a long, and at or above which a short, is liquidatable; 0: there is none.
    uint256 liquidationPrice;
    /// The oracle price at or below which a long, and at or above which a short, has no equity left; 0: there is none.
    uint256 bankruptcyPrice;
}

/// @notice How a market can end at the current block. Times in milliseconds.
struct EndingPreview {
    /// 0: no close is scheduled.
    uint256 closesAt;
    /// The last time for a final report, or for one that replaces it; 0 before the close.
    uint256 reportableUntil;
    /// `finalizeMarket` succeeds for any account, at `price`.
    bool finalizable;
    /// `freeze` succeeds for any account, at `price`.
    bool freezable;
    /// x 1e18; 0 if the market can be neither finalized nor frozen.
    uint256 price;
}
