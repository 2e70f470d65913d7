// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {FINAL_REPORT_TIME, MAX_DISPUTE_WINDOW, MAX_LIFE, MIN_DISPUTE_WINDOW} from "../types/Durations.sol";
import {MarketGrid, MarketKind, MarketMode} from "../types/Market.sol";
import {Ending, ListedTerms, TraderState} from "../types/TraderState.sol";
import {DelayBoundsLib} from "./DelayBoundsLib.sol";

/// @title Close of a market, final report and dispute window. Twin of domain/risk/ending.ts
library EndingLib {
    // ------------------------------------------------------------------ the close

    /// @notice The expiry or the time of the mode settling, whichever is earlier; 0 if neither is set.
    function closesAt(Ending memory ending) internal pure returns (uint256) {
        (uint256 expiresAt, uint256 settlingAt) = (ending.expiresAt, ending.settlingAt);
        if (expiresAt == 0) return settlingAt;
        return settlingAt == 0 || expiresAt < settlingAt ? expiresAt : settlingAt;
    }

    /// @notice Whether the market is closed at `time`, so that only its final price is missing.
    function isClosed(Ending memory ending, uint256 time) internal pure returns (bool) {
        uint256 close = closesAt(ending);
        return close != 0 && time >= close;
    }

    /// @notice An expired market is in mode settling, whatever its parameters contain.
    /// @param expiresAt In force; 0 for a perpetual.
    function modeAt(uint256 expiresAt, MarketMode mode, uint256 asOf) internal pure returns (MarketMode) {
        return expiresAt != 0 && asOf >= expiresAt && mode < MarketMode.Settling ? MarketMode.Settling : mode;
    }

    // ------------------------------------------------------------------ the final report

    /// @notice The last time at which a final report is accepted: `FINAL_REPORT_TIME` after the close, or, if there is a report,
    /// the end of the dispute window. The market can be frozen after the first, and finalized after the second.
    function reportableUntil(Ending memory ending) internal pure returns (uint256) {
        return ending.reportedAt == 0
            ? closesAt(ending) + FINAL_REPORT_TIME
            : uint256(ending.reportedAt) + ending.disputeWindow;
    }

    /// @notice Whether a report with this time replaces the one in force: the newest report of a final feed counts, and of a
    /// perpetual's own feed the one nearest to the close. Of the same moment another price counts: the report in force may be
    /// that of a round that was superseded within its second.
    function supersedes(Ending memory ending, bool isPerpetual, uint256 price, uint256 observedAt)
        internal
        pure
        returns (bool)
    {
        if (ending.reportedAt == 0) return true;
        if (!isPerpetual) return observedAt > ending.observedAt;
        return observedAt < ending.observedAt || (observedAt == ending.observedAt && price != ending.price);
    }

    // ------------------------------------------------------------------ listing

    /// @notice Checks and stores expiry, dispute window and the terms of the final price. For the constructor of a market.
    function initialize(TraderState storage state, MarketGrid memory grid) internal {
        _requireExpiry(grid);
        requireWindow(grid.disputeWindow);
        state.listedTerms = ListedTerms({
            marketId: grid.marketId,
            feedId: grid.finalFeedId,
            low: grid.finalLow,
            high: grid.finalHigh,
            disputeWindow: grid.disputeWindow
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
