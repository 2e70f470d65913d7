// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";

/// @title The market's word with the bank about one account
library LedgerLib {
    /// @notice An account and the change of its free balance, as the bank reads it.
    function word(address account, int96 delta) internal pure returns (bytes32) {
        return bytes32((uint256(uint160(account)) << 96) | uint96(delta));
    }

    /// @notice Moves `delta` between the account's free balance and the market's pool.
    function move(IMarginBank bank, uint256 asOf, address account, int256 delta) internal {
        if (delta == 0) return;
        if (delta != int96(delta)) revert ISettlementErrors.PositionOutOfRange(account);
        bytes32[] memory deltas = new bytes32[](1);
        deltas[0] = word(account, int96(delta));
        bank.settle(asOf, 0, deltas);
    }
}
