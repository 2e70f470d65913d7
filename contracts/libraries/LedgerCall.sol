// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarginBank} from "../interfaces/IMarginBank.sol";

/**
 * @title `IMarginBank.settle`, called with words that are written where the call is sent from
 * @notice The compiler would copy every word once more, for some 70 gas an account. Memory, from the start of the data:
 * selector 4 | asOf 32 | fees 32 | offset 32, = 96 | count 32 | words.
 */
library LedgerCall {
    uint256 private constant HEAD = 132;

    /// @notice Memory for a call with up to `most` words.
    /// @return data The call, unfinished.
    /// @return next Where the first word goes.
    function start(uint256 most) internal pure returns (bytes memory data, uint256 next) {
        data = new bytes(HEAD + 32 * most);
        assembly ("memory-safe") {
            next := add(data, 164) // length word and head
        }
    }

    /// @notice Adds an account and the change of its free balance, which fits int96.
    function push(uint256 next, address account, int256 change) internal pure returns (uint256) {
        assembly ("memory-safe") {
            mstore(next, or(shl(96, account), shr(160, shl(160, change))))
        }
        return next + 32;
    }

    /// @notice Sends what was pushed up to `next`. What the bank reverts with is handed on. The bank has code: the market's
    /// constructor has checked it.
    function send(bytes memory data, uint256 next, address bank, uint256 asOf, uint256 fees) internal {
        uint256 selector = uint32(IMarginBank.settle.selector);
        assembly ("memory-safe") {
            let from := add(data, 32)
            mstore(from, shl(224, selector))
            mstore(add(from, 4), asOf)
            mstore(add(from, 36), fees)
            mstore(add(from, 68), 96)
            mstore(add(from, 100), shr(5, sub(next, add(from, HEAD))))
            if iszero(call(gas(), bank, 0, from, sub(next, from), 0, 0)) {
                let reason := mload(0x40)
                returndatacopy(reason, 0, returndatasize())
                revert(reason, returndatasize())
            }
        }
    }
}
