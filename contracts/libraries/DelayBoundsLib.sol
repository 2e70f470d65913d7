// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Bounds of the delays that a deployer or an admin chooses
library DelayBoundsLib {
    /// @notice All in seconds.
    error DelayOutOfRange(uint256 asked, uint256 lowest, uint256 highest);

    /// @notice Reverts unless `lowest` <= `delay` <= `highest`. On a test chain the lower bound is 0.
    function requireWithin(uint256 delay, uint256 lowest, uint256 highest) internal view {
        if (isTestChain()) lowest = 0;
        if (delay < lowest || delay > highest) revert DelayOutOfRange(delay, lowest, highest);
    }

    /// @notice True on MegaETH's test network, whose chain id the local stack uses too, and in test runners.
    function isTestChain() internal view returns (bool) {
        return block.chainid == 6343 || block.chainid == 31_337;
    }
}
