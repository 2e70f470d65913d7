// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAccountManager} from "../interfaces/IAccountManager.sol";
import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {IPriceOracle} from "../interfaces/IPriceOracle.sol";
import {MarketGrid} from "./Market.sol";

/// @notice What a market never changes and keeps in its code: handed to linked libraries, which cannot see immutables.
struct MarketContext {
    MarketGrid grid;
    IMarginBank bank;
    IAccountManager accountManager;
    IPriceOracle oracle;
    /// Of the EIP-712 domain in which orders and adjustments are signed.
    bytes32 domainSeparator;
}
