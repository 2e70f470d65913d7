// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {MAX_DISPUTE_WINDOW, MAX_LIFE, MIN_DISPUTE_WINDOW} from "../types/Durations.sol";
import {MarketGrid, MarketKind} from "../types/Market.sol";
import {FinalTerms, TraderState} from "../types/TraderState.sol";
import {DelayBoundsLib} from "./DelayBoundsLib.sol";

/// @title Expiry and end of a market. Twin of domain/risk/ending.ts
library EndingLib {
    // ------------------------------------------------------------------ listing

    /// @notice Checks and stores expiry, dispute window and the terms of the final price. For the constructor of a market.
    function initialize(TraderState storage state, MarketGrid memory grid) internal {
        _requireExpiry(grid);
        requireWindow(grid.disputeWindow);
        state.finalTerms = FinalTerms({
            feedId: grid.finalFeedId, low: grid.finalLow, high: grid.finalHigh, disputeWindow: grid.disputeWindow
        });
        state.ending.expiresAt = grid.expiresAt;
        state.ending.disputeWindow = grid.disputeWindow;
    }

    function _requireExpiry(MarketGrid memory grid) private view {
        uint256 earliest;
        uint256 latest;
        if (grid.kind != MarketKind.Perpetual) {
            earliest = block.timestamp * 1000 + 1;
            latest = block.timestamp * 1000 + MAX_LIFE;
        }
        if (grid.expiresAt < earliest || grid.expiresAt > latest) {
            revert IIsolatedTrader.ExpiryInvalid(earliest, latest, grid.expiresAt);
        }
    }

    /// @notice Reverts unless the dispute window (milliseconds) is within its bounds.
    function requireWindow(uint256 window) internal view {
        uint256 shortest = DelayBoundsLib.isTestChain() ? 1000 : MIN_DISPUTE_WINDOW;
        if (window < shortest || window > MAX_DISPUTE_WINDOW) {
            revert IIsolatedTrader.DisputeWindowInvalid(shortest, MAX_DISPUTE_WINDOW, window);
        }
    }
}
