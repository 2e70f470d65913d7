// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarketChanges} from "../interfaces/IMarketChanges.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {MarketMode, Parameters} from "../types/Market.sol";
import {Clock, PendingChange, Reference, TraderState} from "../types/TraderState.sol";
import {ACTION_LIFETIME, AHEAD} from "../types/Durations.sol";
import {FundingLib} from "./FundingLib.sol";

/// @notice What a market can be asked to do, and what its mode has to allow.
enum ActionKind {
    Batch,
    UpdateFunding,
    InheritPosition,
    Deleverage,
    Finalize,
    Freeze,
    // Adjustments stay outside the counter.
    AddMargin,
    RemoveMargin,
    ChangeLeverage
}

/**
 * @title The market's queue of actions
 * @notice Every action takes the next number and an `asOf` that does not decrease. Before it does anything, what was scheduled
 * takes over and funding is settled into the index, both up to its `asOf`. It ends with `requireTimely`.
 *
 *     ActionLib.Action memory action = ActionLib.Action(state.clock, state.reference_, state.parameters);
 *     ActionLib.begin(action, state, actionId, asOf, kind);
 *     ... change action.clock, action.reference_ ...
 *     ActionLib.save(state, action);
 *     ActionLib.requireTimely(asOf);
 */
library ActionLib {
    /// @notice The slots that every action reads, in memory. `save` writes back clock and reference.
    struct Action {
        Clock clock;
        Reference reference_;
        Parameters parameters;
    }

    /// @dev Which kinds each mode allows: bit 16 x mode + kind. Cancel-only batches have a rule of their own on top: they may
    /// only close accounts that are being liquidated (`PartTerms.forcedOnly`).
    uint256 private constant ALLOWED = OPEN | (CANCEL_ONLY << 16) | (HALTED << 32) | (SETTLING << 48);
    uint256 private constant OPEN = 0x1EF; // all but finalize
    uint256 private constant CANCEL_ONLY = 0x1EF;
    uint256 private constant HALTED = 0x060; // freeze, add margin
    uint256 private constant SETTLING = 0x070; // finalize, freeze, add margin

    // ------------------------------------------------------------------ beginning and ending

    /// @notice Takes the next action number as of `asOf`. Nothing is written but what was scheduled.
    /// @dev `action` is filled by the caller: returned from here, it would be blank before, for some 400 gas.
    function begin(Action memory action, TraderState storage state, uint256 actionId, uint256 asOf, ActionKind kind)
        internal
    {
        Clock memory clock = action.clock;
        if (actionId != uint256(clock.actionId) + 1) {
            revert ISettlementErrors.ActionOutOfOrder(uint256(clock.actionId) + 1, actionId);
        }
        if (asOf < clock.asOf) revert ISettlementErrors.AsOfDecreased(clock.asOf, asOf);
        Reference memory reference_ = action.reference_;
        if (reference_.changePending) action.parameters = _takeOver(state, action.parameters, reference_, actionId, asOf);
        requireMode(action.parameters.mode, kind);

        if (reference_.funded && asOf != clock.asOf) {
            FundingLib.accrue(state.funding, reference_, clock.asOf, asOf);
        }
        // A batch ends with the first action that is not its next part: of another kind or another time.
        if (kind != ActionKind.Batch || asOf != clock.asOf) clock.parts = clock.part;
        // Both fit: they come in 48 bits, or are refused as out of time.
        clock.actionId = uint48(actionId);
        clock.asOf = uint48(asOf);
    }

    function save(TraderState storage state, Action memory action) internal {
        state.clock = action.clock;
        state.reference_ = action.reference_;
    }

    /// @notice Block time is read here and nowhere else in an action, and last: reading it limits what may follow.
    function requireTimely(uint256 asOf) internal view {
        uint256 blockTime = block.timestamp * 1000;
        if (asOf > blockTime + AHEAD) revert ISettlementErrors.AsOfAhead(blockTime, asOf);
        if (blockTime > asOf + ACTION_LIFETIME) revert ISettlementErrors.AsOfStale(blockTime, asOf);
    }

    function requireMode(MarketMode mode, ActionKind kind) internal pure {
        if ((ALLOWED >> (16 * uint256(mode) + uint256(kind))) & 1 == 0) revert ISettlementErrors.MarketNotOpen(mode);
    }

    // ------------------------------------------------------------------ scheduled changes

    /// @notice The parameters that hold as of `asOf`, scheduled changes included: for calls outside the counter.
    /// @param changePending Of the market's reference, which the caller has at hand.
    function parametersAt(TraderState storage state, bool changePending, uint256 asOf)
        internal
        view
        returns (Parameters memory current)
    {
        current = state.parameters;
        if (changePending) (current,) = _changed(current, state.pending, asOf);
    }

    function _takeOver(
        TraderState storage state,
        Parameters memory current,
        Reference memory reference_,
        uint256 actionId,
        uint256 asOf
    ) private returns (Parameters memory) {
        PendingChange memory pending = state.pending;
        bool due;
        (current, due) = _changed(current, pending, asOf);
        if (!due) return current;
        state.pending = pending;
        state.parameters = current;
        reference_.changePending = pending.parametersFrom != 0 || pending.modeFrom != 0 || pending.restrictionFrom != 0;
        emit IMarketChanges.ParametersChanged(actionId, current);
        return current;
    }

    /// @dev Each change takes over at its own time and leaves the others waiting; what has taken over is struck off `pending`.
    function _changed(Parameters memory current, PendingChange memory pending, uint256 asOf)
        private
        pure
        returns (Parameters memory next, bool due)
    {
        MarketMode mode = current.mode;
        next = current;
        if (_isDue(pending.parametersFrom, asOf)) {
            (next, pending.parametersFrom, due) = (pending.parameters, 0, true);
        }
        // `ChangeLib` lets no laxer mode wait that is older than a restriction: what is still scheduled comes after it.
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
