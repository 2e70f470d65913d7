// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {PAUSE_GRACE} from "../types/Durations.sol";

/// @title What a pause of the bank means for a market, beyond the bank's own refusal to settle. Twin of domain/risk/bank-pause.ts
library PauseLib {
    function requireNotPaused(IMarginBank bank) internal view {
        if (bank.isPaused()) revert IMarginBank.BankPaused(lastPauseEnd(bank));
    }

    /**
     * @notice Reverts if a liquidation of the account as of `asOf` comes before the end of the last pause + PAUSE_GRACE. Owners
     * could not add margin during the pause. For an account with equity; one without equity has nothing left to defend.
     * @dev `asOf` is at most AHEAD later than block time, so the grace in block time is at most that much shorter.
     */
    function requireGraceOver(IMarginBank bank, uint256 asOf, address account) internal view {
        uint256 graceEnd = graceEndsAt(bank);
        if (asOf < graceEnd) revert ISettlementErrors.LiquidationTooSoon(account, graceEnd, asOf);
    }

    /// @notice Milliseconds; in 1970 if the bank was never paused.
    function graceEndsAt(IMarginBank bank) internal view returns (uint256) {
        return lastPauseEnd(bank) * 1000 + PAUSE_GRACE;
    }

    /// @notice End of the bank's last pause in Unix seconds; 0 if it was never paused.
    /// @dev Reads the second word of `lastPause`: decoding the struct would cost the market another 150 bytes of code. The bank
    /// is a contract: the market's constructor checks it.
    function lastPauseEnd(IMarginBank bank) internal view returns (uint256 endsAt) {
        uint256 selector = uint32(IMarginBank.lastPause.selector);
        assembly ("memory-safe") {
            mstore(0, selector)
            if iszero(staticcall(gas(), bank, 28, 4, 0, 64)) { revert(0, 0) }
            endsAt := mload(32)
        }
    }
}
