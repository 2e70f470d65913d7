// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAccountManager} from "../interfaces/IAccountManager.sol";
import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {IPriceOracle} from "../interfaces/IPriceOracle.sol";
import {MarketKind} from "./Market.sol";

/// @notice The immutables of a market, appended to delegated calls because the extension's code cannot read them (`ContextLib`).
/// One word per field, in memory and in calldata.
struct MarketContext {
    MarketKind kind;
    uint256 tick;
    uint256 step;
    bytes32 feedId;
    bytes32 sessionFeedId;
    /// The listed expiry in milliseconds; the largest number for a perpetual. `Ending.expiresAt` may be later.
    uint256 expiresAt;
    IMarginBank bank;
    IAccountManager accountManager;
    IPriceOracle oracle;
    /// EIP-712 domain separator of orders and adjustments.
    bytes32 domainSeparator;
}
