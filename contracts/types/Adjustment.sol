// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice A signed margin adjustment (EIP-712 struct, fields in this order). Amounts are wei.
struct AdjustMargin {
    address account;
    /// Positive adds, negative removes.
    int256 amount;
    /// 0: exactly the amount. 1, for a removal only: up to the amount.
    uint8 removeMode;
    /// Reverts if less moves.
    uint256 minAmount;
    /// Valid once, in any order, if it is not below the account's minimum.
    uint256 nonce;
    /// Unix seconds; the latest valid `asOf`.
    uint256 deadline;
}

/// @notice A signed leverage adjustment (EIP-712 struct, fields in this order). Amounts are wei.
struct AdjustLeverage {
    address account;
    /// x 1e18, a whole number.
    uint256 leverage;
    /// Maximum debit of the free balance.
    uint256 maxMarginIn;
    /// Minimum credit to the free balance.
    uint256 minMarginOut;
    uint256 nonce;
    uint256 deadline;
}
