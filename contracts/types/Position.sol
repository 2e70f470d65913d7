// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice One account's isolated position, unpacked; `margin` includes settled funding.
struct Position {
    /// Signed quantity steps, long positive.
    int256 size;
    /// Sum of price x quantity of the open steps, in wei.
    uint256 entryNotional;
    int256 margin;
    /// Whole number, from the last opening fill or leverage adjustment; 0 only for an account that never had a position.
    uint256 leverage;
    /// The account has a floor of salts or margin nonces, in a slot that is read only if this is set.
    bool hasFloors;
}
