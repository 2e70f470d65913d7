// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice One account's isolated position, unpacked; funding is settled into `margin`.
struct Position {
    /// Signed quantity steps, long positive.
    int256 size;
    /// Sum of price x quantity of what is still open, in wei.
    uint256 entryNotional;
    int256 margin;
    /// Whole number of the last opening fill or leverage change; 0 only for an account never seen.
    uint256 leverage;
    /// The account has floors below which salts or margin nonces are void; they lie in a cold slot.
    bool hasFloors;
}
