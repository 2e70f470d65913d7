// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketContext} from "../types/MarketContext.sol";

/// @title A market's call, handed on to its desk with the immutables that the desk's code cannot see
library ContextLib {
    /// @notice Runs `code` on the caller's storage: it is given the call's data as it stands, and the context after it. The code
    /// exists: the caller's constructor has checked it. What it answered is `end`'s to hand back.
    function handOn(address code, MarketContext memory context) internal returns (bool done) {
        // Nothing but `end` runs after it, so memory beyond the free memory pointer is its own. 384: a context's twelve words.
        assembly ("memory-safe") {
            let data := mload(0x40)
            let size := calldatasize()
            calldatacopy(data, 0, size)
            mcopy(add(data, size), context, 384)
            done := delegatecall(gas(), code, data, add(size, 384), 0, 0)
        }
    }

    /// @notice Ends the call at hand with the answer to the last one: its result if that is `done`, its error if not.
    function end(bool done) internal pure {
        assembly ("memory-safe") {
            let data := mload(0x40)
            returndatacopy(data, 0, returndatasize())
            if iszero(done) { revert(data, returndatasize()) }
            return(data, returndatasize())
        }
    }

    /// @notice What was handed on: the end of calldata, whatever a caller of the market appended before it.
    function read() internal pure returns (MarketContext calldata context) {
        assembly ("memory-safe") {
            context := sub(calldatasize(), 384)
        }
    }
}
