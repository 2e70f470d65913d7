// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice An order as its maker signed it. `flags` is `salt << 4 | reduceOnly << 1 | buy`, left-aligned in its word. Amounts
/// are x 1e18, the expiration is unix seconds. The trigger is signed and must be well-formed; the contracts do not check
/// whether it was reached.
struct Order {
    bytes8 flags;
    uint128 quantity;
    uint128 price;
    uint128 triggerPrice;
    uint8 triggerCondition;
    uint128 leverage;
    address maker;
    uint128 expiration;
}

/// @notice On-chain state of one salt of a maker.
enum SaltState {
    Unused,
    PartlyFilled,
    Dead,
    CancelRequested
}
