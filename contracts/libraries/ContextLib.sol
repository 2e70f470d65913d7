// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketContext} from "../types/MarketContext.sol";

/// @title Delegates a market's call to its extension, with the market's immutables appended to the calldata
library ContextLib {
    /// @notice Delegates to `code` with the current calldata followed by `context`. `finish` returns the answer.
    /// @dev `code` is a contract: the market's constructor checks it.
    function delegateCall(address code, MarketContext memory context) internal returns (bool success) {
        // Only `finish` runs afterwards, so memory beyond the free memory pointer is free. 320: the ten words of a context.
        assembly ("memory-safe") {
            let data := mload(0x40)
            let size := calldatasize()
            calldatacopy(data, 0, size)
            mcopy(add(data, size), context, 320)
            success := delegatecall(gas(), code, data, add(size, 320), 0, 0)
        }
    }

    /// @notice Ends the current call with the answer to the last one: returns its data if `success`, else reverts with it.
    function finish(bool success) internal pure {
        assembly ("memory-safe") {
            let data := mload(0x40)
            returndatacopy(data, 0, returndatasize())
            if iszero(success) { revert(data, returndatasize()) }
            return(data, returndatasize())
        }
    }

    /// @notice The appended context: the last 320 bytes of calldata, also if a caller of the market appended bytes of its own.
    function read() internal pure returns (MarketContext calldata context) {
        assembly ("memory-safe") {
            context := sub(calldatasize(), 320)
        }
    }
}
