// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IFunding} from "../interfaces/IFunding.sol";
import {MarketKind} from "../types/Market.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Report} from "../types/Report.sol";
import {FundingRate, Reference, TraderState} from "../types/TraderState.sol";
import {ActionKind, ActionLib} from "./ActionLib.sol";
import {BandLib} from "./BandLib.sol";
import {ReportLib} from "./ReportLib.sol";

/**
 * @title Funding: one index in wei per step, and the rate at which it grows. Twin of domain/funding.ts
 * @dev `updateFunding` is linked, everything else is inlined where it is used.
 */
library FundingLib {
    int256 private constant HOUR = 3_600_000;
    /// @dev A keeper who fails stops funding rather than freezing it.
    uint256 internal constant MAX_VALIDITY = 3_600_000;
    /// @dev From one end of the cap to the other in this time, so that no jump can be sprung on a position.
    int256 private constant FULL_SWING = 45 * 60_000;
    /// @dev Where no rate is running, one starts within this part of the cap of zero.
    int256 private constant START_DIVISOR = 3;
    int256 private constant INDEX_END = 1 << 95;

    // ------------------------------------------------------------------ accrual

    /// @notice Settles into the index what the rate has come to between two moments, and forgets a rate that has ended, so
    /// that the next actions need not read it.
    function accrue(FundingRate memory running, Reference memory reference_, uint256 from, uint256 to) internal pure {
        // `updateFunding` has seen to it that the index stays in its bits for as long as the rate is valid.
        reference_.fundingIndex = int96(indexAt(running, reference_.fundingIndex, from, to));
        if (to >= running.validUntil) reference_.funded = false;
    }

    /// @notice Rate x overlap of the time with the rate's validity / 1 h, toward zero. In n steps the index grows by at most
    /// n - 1 wei less than in one, never by more.
    function indexAt(FundingRate memory running, int256 index, uint256 from, uint256 to) internal pure returns (int256) {
        uint256 start = from > running.validFrom ? from : running.validFrom;
        uint256 end = to < running.validUntil ? to : running.validUntil;
        if (end <= start) return index;
        return index + _grown(running.rate, end - start);
    }

    function _grown(int256 rate, uint256 time) private pure returns (int256) {
        // |rate| < 2^95, at most an hour.
        unchecked {
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
        ActionLib.Action memory action = ActionLib.Action(state.clock, state.reference_, state.parameters);
        ActionLib.begin(action, state, actionId, asOf, ActionKind.UpdateFunding);
        Reference memory reference_ = action.reference_;
        ReportLib.take(action, context, report);
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

    /// @notice Refuses a rate that could take the index out of its bits before it ends.
    function requireRoom(int256 index, int256 rate, uint256 time) internal pure {
        int256 last = index + _grown(rate, time);
        if (last <= -INDEX_END || last >= INDEX_END) revert IFunding.FundingIndexOutOfRange(index);
    }

    /// @notice Millionths of the oracle price of a step, in wei per hour, down.
    function capAt(uint256 fundingCap, uint256 oraclePrice, uint256 step) internal pure returns (int256) {
        // Below 2^16, 2^96 and 2^80.
        unchecked {
            return int256((fundingCap * oraclePrice * step) / 1e24);
        }
    }

    /// @notice The rates that may follow `last`, both included; never empty. Within the cap; no further from the last rate (from
    /// the cap, if the price has fallen so far) than 2 x cap x elapsed / 45 min; where none is running, within cap / 3 of zero
    /// as far as that can be reached.
    function bounds(FundingRate memory last, int256 cap, uint256 asOf)
        internal
        pure
        returns (int256 lowest, int256 highest)
    {
        // `asOf` does not decrease; |rate| < 2^95, the cap below 2^192.
        unchecked {
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
