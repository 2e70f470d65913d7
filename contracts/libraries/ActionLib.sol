// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarketChanges} from "../interfaces/IMarketChanges.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {ACTION_LIFETIME, AHEAD} from "../types/Durations.sol";
import {MarketMode, Parameters} from "../types/Market.sol";
import {Clock, PendingChange, Reference, TraderState} from "../types/TraderState.sol";
import {EndingLib} from "./EndingLib.sol";
import {FundingLib} from "./FundingLib.sol";

/// @notice Kinds of actions and adjustments. The market's mode must allow the kind.
enum ActionKind {
    Batch,
    UpdateFunding,
    InheritPosition,
    Deleverage,
    Finalize,
    Freeze,
    // Adjustments have no action number.
    AddMargin,
    RemoveMargin,
    ChangeLeverage
}

/**
 * @title The market's sequence of actions
 * @notice Every action has the next action number and an `asOf` that does not decrease. `begin` applies scheduled changes and
 * accrues funding into the index, both up to `asOf`. Every action ends with `requireTimely`.
 *
 *     ActionLib.Action memory action = ActionLib.Action(state.clock, state.reference_, state.parameters);
 *     ActionLib.begin(action, state, context.expiresAt, actionId, asOf, kind);
 *     ... change action.clock, action.reference_ ...
 *     ActionLib.save(state, action);
 *     ActionLib.requireTimely(asOf);
 */
library ActionLib {
    /// @notice Memory copies of the slots that every action reads. `save` writes clock and reference back.
    struct Action {
        Clock clock;
        Reference reference_;
        Parameters parameters;
    }

    /// @dev Kinds that each mode allows: bit 16 x mode + kind. Batches in cancel-only have an additional rule: every matched step
    /// must close an account in liquidation (`PartTerms.forcedOnly`).
    uint256 private constant ALLOWED = OPEN | (CANCEL_ONLY << 16) | (HALTED << 32) | (SETTLING << 48);
    uint256 private constant OPEN = 0x1EF; // all but finalize
    uint256 private constant CANCEL_ONLY = 0x1EF;
    uint256 private constant HALTED = 0x060; // freeze, add margin
    uint256 private constant SETTLING = 0x070; // finalize, freeze, add margin

    // ------------------------------------------------------------------ beginning and ending

    /// @notice Checks the action number and `asOf`, and advances `action` in memory. Writes storage only if a scheduled change is
    /// due.
    /// @dev The caller fills `action`: as a return value it would be zeroed first, for some 400 gas.
    /// @param expiresAt The listed expiry, an immutable of the market: the expiry in force is read from it on only.
    function begin(
        Action memory action,
        TraderState storage state,
        uint256 expiresAt,
        uint256 actionId,
        uint256 asOf,
        ActionKind kind
    ) internal {
        Clock memory clock = action.clock;
        if (actionId != uint256(clock.actionId) + 1) {
            revert ISettlementErrors.ActionOutOfOrder(uint256(clock.actionId) + 1, actionId);
        }
        if (asOf < clock.asOf) revert ISettlementErrors.AsOfDecreased(clock.asOf, asOf);
        Reference memory reference_ = action.reference_;
        if (reference_.changePending) action.parameters = _applyScheduled(state, action.parameters, reference_, actionId, asOf);
        MarketMode mode = action.parameters.mode;
        if (asOf >= expiresAt) mode = EndingLib.modeAt(state.ending.expiresAt, mode, asOf);
        requireMode(mode, kind);

        if (reference_.funded && asOf != clock.asOf) {
            FundingLib.accrue(state.funding, reference_, clock.asOf, asOf);
        }
        // An action of another kind or with another `asOf` closes the batch: no further part of it can follow.
        if (kind != ActionKind.Batch || asOf != clock.asOf) clock.parts = clock.part;
        // Both fit 48 bits: the batch header has 48-bit fields, and `requireTimely` rejects a larger `asOf`.
        clock.actionId = uint48(actionId);
        clock.asOf = uint48(asOf);
    }

    function save(TraderState storage state, Action memory action) internal {
        state.clock = action.clock;
        state.reference_ = action.reference_;
    }

    /// @notice Reverts if `asOf` > block time + AHEAD or block time > `asOf` + ACTION_LIFETIME.
    /// @dev Called last in every action and the only read of block time: on MegaETH, a transaction that has read block time may
    /// use only limited gas afterwards.
    function requireTimely(uint256 asOf) internal view {
        uint256 blockTime = block.timestamp * 1000;
        if (asOf > blockTime + AHEAD) revert ISettlementErrors.AsOfAhead(blockTime, asOf);
        if (blockTime > asOf + ACTION_LIFETIME) revert ISettlementErrors.AsOfStale(blockTime, asOf);
    }

    function requireMode(MarketMode mode, ActionKind kind) internal pure {
        if ((ALLOWED >> (16 * uint256(mode) + uint256(kind))) & 1 == 0) revert ISettlementErrors.MarketNotOpen(mode);
    }

    /// @notice The mode at `asOf`, including due scheduled changes and the expiry. For calls without an action number.
    function modeAt(TraderState storage state, uint256 asOf) internal view returns (MarketMode) {
        MarketMode mode = parametersAt(state, state.reference_.changePending, asOf).mode;
        return EndingLib.modeAt(state.ending.expiresAt, mode, asOf);
    }

    // ------------------------------------------------------------------ scheduled changes

    /// @notice The parameters in force as of `asOf`, including due scheduled changes. For calls without an action number.
    /// @param changePending The flag of the market's reference, which the caller has read.
    function parametersAt(TraderState storage state, bool changePending, uint256 asOf)
        internal
        view
        returns (Parameters memory current)
    {
        current = state.parameters;
        if (changePending) (current,) = changed(current, state.pending, asOf);
    }

    function _applyScheduled(
        TraderState storage state,
        Parameters memory current,
        Reference memory reference_,
        uint256 actionId,
        uint256 asOf
    ) private returns (Parameters memory) {
        PendingChange memory pending = state.pending;
        bool due;
        (current, due) = changed(current, pending, asOf);
        if (!due) return current;
        state.pending = pending;
        state.parameters = current;
        reference_.changePending = pending.parametersFrom != 0 || pending.modeFrom != 0 || pending.restrictionFrom != 0;
        emit IMarketChanges.ParametersChanged(actionId, current);
        return current;
    }

    /// @notice Applies each change that is due at its own time, and clears its time in `pending`. The others remain scheduled.
    function changed(Parameters memory current, PendingChange memory pending, uint256 asOf)
        internal
        pure
        returns (Parameters memory next, bool due)
    {
        MarketMode mode = current.mode;
        next = current;
        if (_isDue(pending.parametersFrom, asOf)) {
            (next, pending.parametersFrom, due) = (pending.parameters, 0, true);
        }
        // `ChangeLib.restrictMode` drops laxer modes that were scheduled before the restriction. A laxer mode that is still
        // scheduled was scheduled after it and replaces it.
        if (_isDue(pending.restrictionFrom, asOf)) {
            if (pending.restriction > mode) mode = pending.restriction;
            (pending.restrictionFrom, due) = (0, true);
        }
        if (_isDue(pending.modeFrom, asOf)) (mode, pending.modeFrom, due) = (pending.mode, 0, true);
        next.mode = mode;
    }

    function _isDue(uint256 from, uint256 asOf) private pure returns (bool) {
        return from != 0 && asOf >= from;
    }
}
