// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice A change of margin, as its account signed it (EIP-712, in this order). Amounts are wei.
struct AdjustMargin {
    address account;
    /// Positive adds, negative removes.
    int256 amount;
    /// 0: exactly the amount. 1, for a removal: what can be removed of it.
    uint8 removeMode;
    /// Least amount that must move.
    uint256 minAmount;
    /// Used once, in any order, and not below the account's minimum.
    uint256 nonce;
    /// Unix seconds; the last moment that `asOf` may name.
    uint256 deadline;
}

/// @notice A change of leverage, as its account signed it (EIP-712, in this order). Amounts are wei.
struct AdjustLeverage {
    address account;
    /// x 1e18, a whole number.
    uint256 leverage;
    /// The most that may leave the free balance for it, and the least that must come back.
    uint256 maxMarginIn;
    uint256 minMarginOut;
    uint256 nonce;
    uint256 deadline;
}
