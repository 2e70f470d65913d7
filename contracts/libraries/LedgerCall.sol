// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";

/**
 * @title Calls `IMarginBank.settleDeltas` with calldata that is built in place
 * @notice The compiler's encoder would copy every word once more, for some 70 gas per account. Layout of the calldata in memory:
 * selector 4 | asOf 32 | fees 32 | offset 32, = 96 | count 32 | words.
 */
library LedgerCall {
    uint256 private constant HEAD = 132;

    /// @notice Allocates memory for a call with up to `most` words.
    /// @return from Address of the calldata.
    /// @return next Address of the first word.
    function start(uint256 most) internal pure returns (uint256 from, uint256 next) {
        assembly ("memory-safe") {
            from := mload(0x40)
            next := add(from, HEAD)
            mstore(0x40, add(from, add(160, shl(5, most)))) // the head, in whole words
        }
    }

    /// @notice Appends an account and the change of its free balance, which must fit int96.
    function push(uint256 next, address account, int256 change) internal pure returns (uint256) {
        assembly ("memory-safe") {
            mstore(next, or(shl(96, account), shr(160, shl(160, change))))
        }
        return next + 32;
    }

    /// @notice Calls the bank with the words up to `next`, and reverts with the bank's error if it reverts. The bank is a
    /// contract: the market's constructor checks it.
    function send(uint256 from, uint256 next, IMarginBank bank, uint256 asOf, uint256 fees) internal {
        uint256 selector = uint32(IMarginBank.settleDeltas.selector);
        assembly ("memory-safe") {
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

    /// @notice Moves `delta` between the free balance of one account and the market's pool.
    function move(IMarginBank bank, uint256 asOf, address account, int256 delta) internal {
        if (delta == 0) return;
        if (delta != int96(delta)) revert ISettlementErrors.PositionOutOfRange(account);
        (uint256 from, uint256 next) = start(1);
        // Same as `push`: with one call site only, the compiler inlines `push` into settlement.
        assembly ("memory-safe") {
            mstore(next, or(shl(96, account), shr(160, shl(160, delta))))
        }
        send(from, next + 32, bank, asOf, 0);
    }
}
