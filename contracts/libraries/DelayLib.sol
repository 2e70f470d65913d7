// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {isTestChain} from "./Delays.sol";

/// @title Delays that whoever deploys chooses, within bounds
library DelayLib {
    /// @notice All in seconds.
    error DelayOutOfRange(uint256 asked, uint256 lowest, uint256 highest);

    /// @notice `delay` may not be shorter than `lowest` but on a test chain, nor longer than `highest` anywhere.
    function requireWithin(uint256 delay, uint256 lowest, uint256 highest) internal view {
        if (isTestChain()) lowest = 0;
        if (delay < lowest || delay > highest) revert DelayOutOfRange(delay, lowest, highest);
    }
}
