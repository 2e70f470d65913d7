// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice A report of the market's oracle, with its proof.
struct Report {
    /// Price x 1e18.
    uint96 price;
    /// Milliseconds.
    uint48 observedAt;
    bytes proof;
}
