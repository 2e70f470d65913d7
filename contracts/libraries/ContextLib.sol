// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketContext} from "../types/MarketContext.sol";

/// @title What a market appends to a call that it hands on to its desk: the immutables that the desk's code cannot see
library ContextLib {
    /// @dev Every type in a context is static: twelve words.
    uint256 private constant LENGTH = 12 * 32;

    /// @notice The call at hand, as it stands in calldata, and the context after it.
    function append(MarketContext memory context) internal pure returns (bytes memory) {
        return abi.encodePacked(msg.data, abi.encode(context));
    }

    function read() internal pure returns (MarketContext memory) {
        return abi.decode(msg.data[msg.data.length - LENGTH:], (MarketContext));
    }
}
