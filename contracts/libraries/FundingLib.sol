// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {IFunding} from "../interfaces/IFunding.sol";
import {MarketKind} from "../types/Market.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Report} from "../types/Report.sol";
import {FundingRate, Reference, TraderState} from "../types/TraderState.sol";
import {ActionKind, ActionLib} from "./ActionLib.sol";
import {BandLib} from "./BandLib.sol";
import {PauseLib} from "./PauseLib.sol";
import {ReportLib} from "./ReportLib.sol";

/**
 * @title Funding: one index in wei per step, and the rate at which it grows. Twin of domain/prices/funding.ts
 * @dev `updateFunding` is linked to the extension; all other functions are inlined.
 */
library FundingLib {
    int256 private constant HOUR = 3_600_000;
    /// @dev Maximum validity of a rate: if the operator sends no update, funding stops.
    uint256 internal constant MAX_VALIDITY = 3_600_000;
    /// @dev Minimum time in which the rate can move from one end of the cap to the other.
    int256 private constant FULL_SWING = 45 * 60_000;
    /// @dev If no rate is running, a new rate is at most cap / START_DIVISOR away from zero.
    int256 private constant START_DIVISOR = 3;
    int256 private constant INDEX_END = 1 << 95;

    // ------------------------------------------------------------------ accrual

    /// @notice Adds the funding between two moments to the index. Clears `funded` if the rate has ended, so that later actions
    /// do not read its slot.
    function accrue(FundingRate memory running, Reference memory reference_, uint256 from, uint256 to) internal pure {
        // `updateFunding` has checked (`requireRoom`) that the index fits its 96 bits until the rate ends.
        reference_.fundingIndex = int96(indexAt(running, reference_.fundingIndex, from, to));
        if (to >= running.validUntil) reference_.funded = false;
    }

    /// @notice Index + rate x (overlap of the interval with the rate's validity) / 1 h, rounded toward zero. Accruing in n steps
    /// adds at most n - 1 wei less than accruing in one step, and never more: both sides of the market lose and gain the same
    /// wei, and an operator who sends an action every few milliseconds withholds less than a wei per step with each of them.
    function indexAt(FundingRate memory running, int256 index, uint256 from, uint256 to) internal pure returns (int256) {
        uint256 start = from > running.validFrom ? from : running.validFrom;
        uint256 end = to < running.validUntil ? to : running.validUntil;
        if (end <= start) return index;
        return index + _grown(running.rate, end - start);
    }

    function _grown(int256 rate, uint256 time) private pure returns (int256) {
        unchecked { // U12
            return (rate * int256(time)) / HOUR;
        }
    }

    // ------------------------------------------------------------------ setting the rate

    /// @notice See `IFunding.updateFunding`.
    function updateFunding(
        TraderState storage state,
        MarketContext calldata context,
        uint256 actionId,
        uint256 asOf,
        int96 rate,
        uint48 validUntil,
        Report calldata report,
        Report calldata session
    ) external {
        if (context.kind != MarketKind.Perpetual) revert IFunding.NotPerpetual();
        // During a pause no owner can add margin. The rate that runs at its start still accrues until it ends.
        PauseLib.requireNotPaused(context.bank);
        ActionLib.Action memory action = ActionLib.Action(state.clock, state.reference_, state.parameters);
        ActionLib.begin(action, state, context.expiresAt, actionId, asOf, ActionKind.UpdateFunding);
        Reference memory reference_ = action.reference_;
        ReportLib.accept(action, context, report);
        _requireValidity(context, asOf, validUntil, session, action.parameters.reportMaxAge);
        int256 cap = capAt(action.parameters.fundingCap, reference_.oraclePrice, context.step);
        (int256 lowest, int256 highest) = bounds(state.funding, cap, asOf);
        if (rate < lowest || rate > highest) revert IFunding.FundingRateOutOfRange(lowest, highest, rate);
        requireRoom(reference_.fundingIndex, rate, validUntil - asOf);

        state.funding = FundingRate({rate: rate, validFrom: uint48(asOf), validUntil: validUntil});
        reference_.funded = rate != 0;
        ActionLib.save(state, action);
        emit IFunding.FundingUpdated(
            actionId,
            asOf,
            rate,
            validUntil,
            reference_.fundingIndex,
            reference_.oraclePrice,
            reference_.observedAt
        );
        ActionLib.requireTimely(asOf);
    }

    function _requireValidity(
        MarketContext calldata context,
        uint256 asOf,
        uint256 validUntil,
        Report calldata session,
        uint256 maxAge
    ) private view {
        uint256 latest = asOf + MAX_VALIDITY;
        bytes32 sessionFeed = context.sessionFeedId;
        if (sessionFeed != 0) {
            uint256 end = session.price;
            BandLib.checkAge(asOf, session.observedAt, maxAge);
            context.oracle.verify(sessionFeed, end, session.observedAt, session.proof);
            if (end <= asOf) revert IFunding.SessionClosed(asOf, end);
            if (end < latest) latest = end;
        }
        if (validUntil <= asOf || validUntil > latest) {
            revert IFunding.FundingValidityInvalid(asOf, latest, validUntil);
        }
    }

    // ------------------------------------------------------------------ bounds

    /// @notice Reverts if the rate could move the index out of its 96 bits before it ends.
    function requireRoom(int256 index, int256 rate, uint256 time) internal pure {
        int256 last = index + _grown(rate, time);
        if (last <= -INDEX_END || last >= INDEX_END) revert IFunding.FundingIndexOutOfRange(index);
    }

    /// @notice The cap in wei per step and hour: `fundingCap` (millionths) of the oracle price of one step, rounded down.
    function capAt(uint256 fundingCap, uint256 oraclePrice, uint256 step) internal pure returns (int256) {
        unchecked { // U12
            return int256((fundingCap * oraclePrice * step) / 1e24);
        }
    }

    /// @notice The range of rates that may follow `last`, both ends included; never empty. A rate is within the cap. Its distance
    /// from the last rate (clamped to the current cap) is at most 2 x cap x elapsed / 45 min. If no rate is running, it is
    /// also within cap / 3 of zero, or as close to that as the distance allows.
    function bounds(FundingRate memory last, int256 cap, uint256 asOf)
        internal
        pure
        returns (int256 lowest, int256 highest)
    {
        unchecked { // U12
            int256 rate = last.rate > cap ? cap : last.rate < -cap ? -cap : int256(last.rate);
            int256 elapsed = int256(asOf - last.validFrom);
            int256 swing = (2 * cap * elapsed) / FULL_SWING;
            int256 reach = cap;
            if (asOf >= last.validUntil) {
                int256 slowest = (rate < 0 ? -rate : rate) - swing;
                reach = cap / START_DIVISOR;
                if (slowest > reach) reach = slowest;
            }
            lowest = rate - swing > -reach ? rate - swing : -reach;
            highest = rate + swing < reach ? rate + swing : reach;
        }
    }
}
