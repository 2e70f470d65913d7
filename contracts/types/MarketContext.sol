// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAccountManager} from "../interfaces/IAccountManager.sol";
import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {IPriceOracle} from "../interfaces/IPriceOracle.sol";
import {MarketKind} from "./Market.sol";

/// @notice What a market never changes and keeps in its code: handed to code that cannot see its immutables. A word per field,
/// in memory as in calldata (`ContextLib`).
struct MarketContext {
    uint256 marketId;
    MarketKind kind;
    uint256 tick;
    uint256 step;
    bytes32 feedId;
    bytes32 sessionFeedId;
    uint96 finalLow;
    uint96 finalHigh;
    IMarginBank bank;
    IAccountManager accountManager;
    IPriceOracle oracle;
    /// Of the EIP-712 domain in which orders and adjustments are signed.
    bytes32 domainSeparator;
}
