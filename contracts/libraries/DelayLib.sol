// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MAINNET} from "./Delays.sol";

/// @title Delays that whoever deploys chooses, within bounds
library DelayLib {
    /// @notice All in seconds.
    error DelayOutOfRange(uint256 asked, uint256 lowest, uint256 highest);

    /// @notice On the main network `delay` may not be shorter than `lowest`, nowhere longer than `highest`.
    function requireWithin(uint256 delay, uint256 lowest, uint256 highest) internal view {
        if (block.chainid != MAINNET) lowest = 0;
        if (delay < lowest || delay > highest) revert DelayOutOfRange(delay, lowest, highest);
    }
}
