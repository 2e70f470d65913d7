// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {IBackstop} from "../interfaces/IBackstop.sol";
import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {IMarketChanges} from "../interfaces/IMarketChanges.sol";
import {IMarketRisk} from "../interfaces/IMarketRisk.sol";
import {IMarketWindDown} from "../interfaces/IMarketWindDown.sol";
import {CANCEL_GRACE, MAX_DISPUTE_WINDOW, MAX_EXPIRY_EXTENSION, NOTICE} from "../types/Durations.sol";
import {MarketKind, MarketMode, Parameters} from "../types/Market.sol";
import {RiskTerms} from "../types/Risk.sol";
import {Ending, PendingChange, TraderState} from "../types/TraderState.sol";
import {ActionLib} from "./ActionLib.sol";
import {EndingLib} from "./EndingLib.sol";
import {ListingLib} from "./ListingLib.sol";
import {PositionLib} from "./PositionLib.sol";

/// @title Scheduling of parameters and modes, extension of the expiry, and choice of a backstop. Linked to the extension;
/// `ActionLib` applies due changes
library ChangeLib {
    // ------------------------------------------------------------------ parameters

    function scheduleParameters(TraderState storage state, MarketKind kind, Parameters memory next, uint48 activeFrom)
        external
    {
        _storeDue(state);
        // Check: valid parameters, sufficient notice, no other schedule.
        MarketMode mode = _currentMode(state);
        if (next.mode != mode) revert IMarketChanges.ModeChangesApart(mode, next.mode);
        if (mode == MarketMode.Settled) revert IMarketChanges.ModeFinal(mode, next.mode);
        ListingLib.requireParameters(next, kind);
        _requireNotice(activeFrom, NOTICE);
        uint256 scheduled = state.pending.parametersFrom;
        if (scheduled != 0) revert IMarketChanges.ParametersAlreadyScheduled(scheduled);

        // Effect: store the schedule.
        state.pending.parameters = next;
        state.pending.parametersFrom = activeFrom;
        state.reference_.changePending = true;
        emit IMarketChanges.ParametersScheduled(next, activeFrom);
    }

    /// @dev Parameters that are in force cannot be cancelled, whether or not an action has stored them. Keeps `changePending`,
    /// because another change may be scheduled. The next action reads the slots and clears it.
    function cancelScheduledParameters(TraderState storage state) external {
        _storeDue(state);
        if (state.pending.parametersFrom == 0) revert IMarketChanges.NoParametersScheduled();
        state.pending.parametersFrom = 0;
        emit IMarketChanges.ScheduledParametersCancelled();
    }

    // ------------------------------------------------------------------ modes

    function scheduleMode(TraderState storage state, MarketMode mode, uint48 activeFrom) external {
        _storeDue(state);
        MarketMode current = _currentMode(state);
        if (current >= MarketMode.Settling || mode == MarketMode.Settled) {
            revert IMarketChanges.ModeFinal(current, mode);
        }
        _requireNotice(activeFrom, mode == MarketMode.Settling ? NOTICE : CANCEL_GRACE + 1);
        (state.pending.mode, state.pending.modeFrom) = (mode, activeFrom);
        state.ending.settlingAt = mode == MarketMode.Settling ? activeFrom : 0;
        state.reference_.changePending = true;
        emit IMarketChanges.ModeScheduled(mode, activeFrom);
    }

    function restrictMode(TraderState storage state, MarketMode mode) external {
        _storeDue(state);
        MarketMode current = _currentMode(state);
        PendingChange storage pending = state.pending;
        if (pending.restrictionFrom != 0 && pending.restriction > current) current = pending.restriction;
        bool withdraws = pending.modeFrom != 0 && pending.mode < mode;
        bool restricts = mode == MarketMode.CancelOnly || mode == MarketMode.Halted;
        if (!restricts || current >= MarketMode.Settling || (mode <= current && !withdraws)) {
            revert IMarketChanges.ModeNotStricter(current, mode);
        }

        // Batches that were matched before the restriction was seen can still settle.
        uint48 activeFrom = uint48(block.timestamp * 1000 + CANCEL_GRACE + 1);
        (pending.restriction, pending.restrictionFrom) = (mode, activeFrom);
        if (withdraws) pending.modeFrom = 0;
        state.reference_.changePending = true;
        emit IMarketChanges.ModeRestricted(mode, activeFrom);
    }

    // ------------------------------------------------------------------ expiry, dispute window

    /// @param listed The listed expiry.
    function extendExpiry(TraderState storage state, uint256 listed, uint48 expiresAt) external {
        uint256 current = state.ending.expiresAt;
        if (current != listed) revert IMarketChanges.ExpiryFixed(current);
        MarketMode mode = _currentMode(state);
        if (mode >= MarketMode.Settling) revert IMarketChanges.ModeFinal(mode, mode);
        uint256 latestCall = current - NOTICE;
        if (block.timestamp * 1000 > latestCall) revert IMarketChanges.ExtensionTooLate(latestCall);
        if (expiresAt <= current || expiresAt > current + MAX_EXPIRY_EXTENSION) {
            revert IIsolatedTrader.ExpiryInvalid(current + 1, current + MAX_EXPIRY_EXTENSION, expiresAt);
        }
        state.ending.expiresAt = expiresAt;
        emit IMarketChanges.ExpiryExtended(expiresAt);
    }

    function extendDisputeWindow(TraderState storage state, uint48 disputeWindow) external {
        uint256 endedAt = state.windDown.endedAt;
        if (endedAt != 0) revert IMarketWindDown.MarketEnded(endedAt);
        Ending memory ending = state.ending;
        if (ending.disputeWindow != state.listedTerms.disputeWindow) {
            revert IMarketChanges.DisputeWindowFixed(ending.disputeWindow);
        }
        uint256 latestCall = EndingLib.reportableUntil(ending);
        if (ending.reportedAt != 0 && block.timestamp * 1000 > latestCall) {
            revert IMarketChanges.ExtensionTooLate(latestCall);
        }
        if (disputeWindow <= ending.disputeWindow || disputeWindow > MAX_DISPUTE_WINDOW) {
            revert IIsolatedTrader.DisputeWindowInvalid(
                uint256(ending.disputeWindow) + 1, MAX_DISPUTE_WINDOW, disputeWindow
            );
        }
        state.ending.disputeWindow = disputeWindow;
        emit IMarketChanges.DisputeWindowExtended(disputeWindow);
    }

    // ------------------------------------------------------------------ backstop

    function setBackstop(TraderState storage state, address backstop, uint96 cap) external {
        uint256 endedAt = state.windDown.endedAt;
        if (endedAt != 0) revert IMarketWindDown.MarketEnded(endedAt);
        // The backstop must have agreed to back this market.
        if (backstop != address(0) && !IBackstop(backstop).backs(address(this))) {
            revert IMarketRisk.BackstopUnwilling(backstop);
        }
        state.riskTerms = RiskTerms({backstop: backstop, backstopCap: cap});
        // Initializes the backstop's position slot, so that its first inheritance does not pay for a fresh slot. Floors of zero
        // invalidate nothing.
        if (backstop != address(0)) state.positions[backstop].bits |= PositionLib.FLOORS_BIT;
        emit IMarketRisk.BackstopChanged(backstop, cap);
    }

    // ------------------------------------------------------------------ internals

    /// @dev Stores the changes that are due, as the next action would. A schedule, restriction or cancellation replaces the one
    /// before it, which possibly no action has stored: in a halted market none can. `changePending` stays set.
    function _storeDue(TraderState storage state) private {
        PendingChange memory pending = state.pending;
        (Parameters memory next, bool due) = ActionLib.changed(state.parameters, pending, block.timestamp * 1000);
        if (!due) return;
        state.pending = pending;
        state.parameters = next;
        emit IMarketChanges.ParametersChanged(uint256(state.clock.actionId) + 1, next);
    }

    /// @dev The mode that an action with `asOf` = block time would find.
    function _currentMode(TraderState storage state) private view returns (MarketMode) {
        return ActionLib.modeAt(state, block.timestamp * 1000);
    }

    function _requireNotice(uint256 activeFrom, uint256 notice) private view {
        uint256 earliest = block.timestamp * 1000 + notice;
        if (activeFrom < earliest) revert IMarketChanges.ChangeTooEarly(earliest, activeFrom);
    }
}
