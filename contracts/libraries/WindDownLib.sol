// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMarketWindDown} from "../interfaces/IMarketWindDown.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {MarketKind, MarketMode, Parameters} from "../types/Market.sol";
import {Position} from "../types/Position.sol";
import {Report} from "../types/Report.sol";
import {Valuation} from "../types/Risk.sol";
import {Ending, ListedTerms, Poked, Reference, TraderState, WindDown} from "../types/TraderState.sol";
import {ActionKind, ActionLib} from "./ActionLib.sol";
import {BandLib} from "./BandLib.sol";
import {AHEAD, COVER_TIME, INSOLVENCY_WINDOW, SILENCE} from "../types/Durations.sol";
import {EndingLib} from "./EndingLib.sol";
import {FundingLib} from "./FundingLib.sol";
import {LedgerCall} from "./LedgerCall.sol";
import {MarginLib} from "./MarginLib.sol";
import {PauseLib} from "./PauseLib.sol";
import {PositionLib} from "./PositionLib.sol";

/// @title Wind-down of a market: freeze or final price, insolvency reports, claims. Linked to the extension; runs on a market's
/// storage. Twin of domain/risk/wind-down.ts
library WindDownLib {
    using SafeCast for uint256;

    // ------------------------------------------------------------------ liveness of the operator

    function heartbeat(TraderState storage state) external {
        _requireNotEnded(state.windDown);
        state.windDown.heartbeatAt = _now();
        emit IMarketWindDown.Heartbeat(_now());
    }

    function requestFreeze(TraderState storage state) external {
        WindDown memory windDown = state.windDown;
        _requireNotEnded(windDown);
        _requireNotClosed(state.ending);
        // Only batches open positions, and only a listed market settles batches: before the first one there is nothing to free.
        // Heartbeats and other actions do not count, because an operator can send them before the market is listed.
        if (state.clock.batchId == 0) revert IMarketWindDown.MarketNeverTraded();
        uint256 aliveAt = _lastActivity(state, windDown);
        if (windDown.requestedAt != 0 && windDown.requestedAt >= aliveAt) {
            revert IMarketWindDown.FreezeAlreadyRequested(windDown.requestedAt);
        }
        // `asOf` of the last action may be ahead of block time: that action must not void a request made after it.
        uint48 requestedAt = uint48(Math.max(_now(), aliveAt));
        state.windDown.requestedAt = requestedAt;
        emit IMarketWindDown.FreezeRequested(msg.sender, requestedAt);
    }

    function poke(TraderState storage state, MarketContext calldata context, Report calldata report) external {
        _requireNotEnded(state.windDown);
        uint256 close = EndingLib.closesAt(state.ending);
        if (close != 0 && report.observedAt >= close) revert IMarketWindDown.MarketClosed(close);
        uint256 asOf = _now();
        Reference memory last = _newest(state);
        Parameters memory current = ActionLib.parametersAt(state, last.changePending, asOf);
        bool binary = context.kind == MarketKind.BinaryFuture;
        BandLib.checkReport(asOf, report.price, report.observedAt, last, current, context.tick, binary);
        context.oracle.verify(context.feedId, report.price, report.observedAt, report.proof);
        state.poked = Poked({price: report.price, observedAt: report.observedAt});
        emit IMarketWindDown.PricePoked(report.price, report.observedAt);
    }

    // ------------------------------------------------------------------ the end

    function freeze(TraderState storage state, MarketContext calldata context) external {
        // Check: the operator is silent, or the market is closed without a final report.
        WindDown memory windDown = state.windDown;
        _requireNotEnded(windDown);
        Ending memory ending = state.ending;
        if (EndingLib.isClosed(ending, _now())) _requireUnreported(ending);
        else _requireSilent(state, windDown);

        // Effect: the last action of the market, at the newest known price.
        uint256 actionId = uint256(state.clock.actionId) + 1;
        ActionLib.Action memory action = _begin(state, context, actionId, _now(), ActionKind.Freeze);
        Reference memory newest = _newest(state);
        uint256 pool = _end(state, context, action, newest.oraclePrice);
        emit IMarketWindDown.MarketFrozen(
            actionId, action.clock.asOf, newest.oraclePrice, newest.observedAt, action.reference_.fundingIndex, pool
        );
    }

    function finalizeMarket(TraderState storage state, MarketContext calldata context, uint256 actionId, uint256 asOf)
        external
    {
        // Check: the final report can no longer be replaced.
        ActionLib.Action memory action = _begin(state, context, actionId, asOf, ActionKind.Finalize);
        Ending memory ending = state.ending;
        if (ending.reportedAt == 0) revert IMarketWindDown.FinalReportMissing();
        uint256 availableAfter = EndingLib.reportableUntil(ending);
        if (_now() <= availableAfter) revert IMarketWindDown.FinalizeEarly(availableAfter);

        // Effect: the last action of the market, at the final price.
        uint256 pool = _end(state, context, action, ending.price);
        emit IMarketWindDown.MarketFinalized(
            actionId, action.clock.asOf, ending.price, ending.observedAt, action.reference_.fundingIndex, pool
        );
        ActionLib.requireTimely(asOf);
    }

    /// @dev Begins the last action of the market. Funding accrues up to the close and not beyond it.
    function _begin(
        TraderState storage state,
        MarketContext calldata context,
        uint256 actionId,
        uint256 asOf,
        ActionKind kind
    ) private returns (ActionLib.Action memory action) {
        action = ActionLib.Action(state.clock, state.reference_, state.parameters);
        uint256 close = EndingLib.closesAt(state.ending);
        if (close != 0 && close < asOf && action.reference_.funded) {
            FundingLib.accrue(state.funding, action.reference_, action.clock.asOf, close);
            action.reference_.funded = false;
        }
        ActionLib.begin(action, state, context.expiresAt, actionId, asOf, kind);
    }

    /// @dev Reverts unless a request is in force and SILENCE has passed since without an action or heartbeat.
    function _requireSilent(TraderState storage state, WindDown memory windDown) private view {
        uint256 aliveAt = _lastActivity(state, windDown);
        if (windDown.requestedAt == 0) revert IMarketWindDown.FreezeNotRequested();
        if (aliveAt > windDown.requestedAt) revert IMarketWindDown.FreezeRequestVoid(windDown.requestedAt, aliveAt);
        uint256 availableAfter = windDown.requestedAt + SILENCE;
        if (_now() <= availableAfter) revert IMarketWindDown.FreezeEarly(availableAfter);
    }

    /// @dev Reverts unless the time for a first final report has passed without one.
    function _requireUnreported(Ending memory ending) private view {
        if (ending.reportedAt != 0) revert IMarketWindDown.FinalReportPresent(ending.reportedAt);
        uint256 availableAfter = EndingLib.reportableUntil(ending);
        if (_now() <= availableAfter) revert IMarketWindDown.FreezeEarly(availableAfter);
    }

    /// @dev Fixes the price and drops scheduled changes.
    function _end(TraderState storage state, MarketContext calldata context, ActionLib.Action memory action, uint96 price)
        private
        returns (uint256 pool)
    {
        action.reference_.changePending = false;
        ActionLib.save(state, action);
        delete state.pending;
        state.parameters.mode = MarketMode.Settled;
        pool = context.bank.market(address(this)).pool;
        state.windDown.price = price;
        state.windDown.endedAt = _now();
        state.windDown.poolAtEnd = uint112(pool);
    }

    // ------------------------------------------------------------------ the final report

    function submitFinalReport(TraderState storage state, MarketContext calldata context, Report calldata report)
        external
    {
        // Check: time of the call, then time, price and proof of the report.
        _requireNotEnded(state.windDown);
        Ending memory ending = state.ending;
        _requireReportable(ending);
        bool isPerpetual = context.kind == MarketKind.Perpetual;
        (uint96 price, uint48 observedAt) = (report.price, report.observedAt);
        _requireObserved(ending, isPerpetual, price, observedAt);
        if (isPerpetual) _requireMove(state, price, observedAt);
        else _requireFinalPrice(state.listedTerms, context.kind, price);
        bytes32 feedId = isPerpetual ? context.feedId : state.listedTerms.feedId;
        context.oracle.verify(feedId, price, observedAt, report.proof);

        // Effect: the report is in force. The dispute window starts with the first one.
        if (ending.reportedAt == 0) ending.reportedAt = _now();
        (ending.price, ending.observedAt) = (price, observedAt);
        state.ending = ending;
        uint48 replaceableUntil = uint48(EndingLib.reportableUntil(ending));
        emit IMarketWindDown.FinalPriceReported(msg.sender, price, observedAt, replaceableUntil);
    }

    function _requireReportable(Ending memory ending) private view {
        if (!EndingLib.isClosed(ending, _now())) revert IMarketWindDown.MarketNotClosed(EndingLib.closesAt(ending));
        uint256 until = EndingLib.reportableUntil(ending);
        if (_now() > until) revert IMarketWindDown.FinalReportLate(until);
    }

    function _requireObserved(Ending memory ending, bool isPerpetual, uint256 price, uint256 observedAt) private view {
        uint256 close = EndingLib.closesAt(ending);
        if (observedAt < close) revert IMarketWindDown.FinalReportEarly(close, observedAt);
        if (observedAt > uint256(_now()) + AHEAD) revert ISettlementErrors.ReportAhead(_now(), observedAt);
        if (!EndingLib.supersedes(ending, isPerpetual, price, observedAt)) {
            revert IMarketWindDown.FinalReportSuperseded(ending.observedAt, observedAt);
        }
    }

    /// @dev The price of a perpetual's own feed may move from the newest known one as far as in any action.
    function _requireMove(TraderState storage state, uint256 price, uint256 observedAt) private view {
        Parameters memory current = ActionLib.parametersAt(state, state.reference_.changePending, _now());
        BandLib.checkReport(observedAt, price, observedAt, _newest(state), current, 0, false);
    }

    function _requireFinalPrice(ListedTerms memory terms, MarketKind kind, uint256 price) private pure {
        (uint256 low, uint256 high) = (terms.low, terms.high);
        bool valid = kind == MarketKind.BinaryFuture
            ? price == low || price == high
            : price >= low && price <= high;
        if (!valid) revert IMarketWindDown.FinalPriceInvalid(low, high, price);
    }

    // ------------------------------------------------------------------ after the end

    function reportInsolvent(TraderState storage state, MarketContext calldata context, address[] calldata accounts)
        external
    {
        WindDown memory windDown = state.windDown;
        _requireEnded(windDown);
        uint256 windowEnd = _windowEnd(windDown, context);
        if (_now() > windowEnd) revert IMarketWindDown.InsolvencyWindowOver(windowEnd);
        uint256 sum = windDown.deficit;
        for (uint256 i; i < accounts.length; ++i) {
            address account = accounts[i];
            (Position memory position, int256 value) = _valueOf(state, context, windDown, account);
            if (value >= 0) continue;
            // The position is emptied, so that its deficit counts once.
            _empty(state, account, position);
            sum += uint256(-value);
            emit IMarketWindDown.InsolvencyReported(account, uint256(-value));
        }
        state.windDown.deficit = sum.toUint128();
    }

    function coverDeficit(TraderState storage state, MarketContext calldata context, uint96 amount) external {
        _requireEnded(state.windDown);
        if (amount == 0) revert IMarketWindDown.AmountZero();
        emit IMarketWindDown.DeficitCovered(amount);
        // Debits the market's own account: the free balance of a trader may back batches that were matched in other markets.
        LedgerCall.move(context.bank, type(uint256).max, address(this), -int256(uint256(amount)));
    }

    function claim(TraderState storage state, MarketContext calldata context, address account) external {
        // Check: the window for insolvency reports is over.
        WindDown memory windDown = state.windDown;
        _requireEnded(windDown);
        uint256 availableAfter = _windowEnd(windDown, context);
        if (_now() <= availableAfter) revert IMarketWindDown.ClaimEarly(availableAfter);
        uint256 pool = context.bank.market(address(this)).pool;
        if (!windDown.haircutFixed) _fixHaircut(state, windDown, pool);

        // Effect: the account's share becomes due, and is paid as far as the pool has funds.
        (Position memory position, int256 signedValue) = _valueOf(state, context, windDown, account);
        uint256 value = signedValue > 0 ? uint256(signedValue) : 0;
        uint256 due = state.unpaidClaims[account];
        if (value > 0) {
            due += _shareOf(value, windDown);
            _empty(state, account, position);
        }
        uint256 paid = Math.min(Math.min(due, pool), uint96(type(int96).max));
        if (value == 0 && paid == 0) revert IMarketWindDown.NothingToClaim(account);
        if (due != paid || state.unpaidClaims[account] != 0) state.unpaidClaims[account] = due - paid;
        emit IMarketWindDown.Claimed(account, value, paid, due - paid);
        LedgerCall.move(context.bank, windDown.endedAt, account, int256(paid));
    }

    /// @dev At most the amount owed: an excess from `coverDeficit` remains in the pool.
    function _fixHaircut(TraderState storage state, WindDown memory windDown, uint256 pool) private {
        uint256 owed = uint256(windDown.poolAtEnd) + windDown.deficit;
        windDown.haircutPool = uint112(Math.min(pool, owed));
        windDown.haircutFixed = true;
        state.windDown = windDown;
        emit IMarketWindDown.HaircutFixed(windDown.haircutPool, owed);
    }

    // ------------------------------------------------------------------ internals

    /**
     * @dev Last millisecond for reports of insolvent accounts; claims are possible after it. A pause that began before the
     * haircut was fixed extends it to the end of the pause + COVER_TIME. A pause that ended before the market did has no
     * effect: COVER_TIME is shorter than the window. After the haircut is fixed no pause extends it.
     */
    function _windowEnd(WindDown memory windDown, MarketContext calldata context) private view returns (uint256) {
        uint256 planned = windDown.endedAt + INSOLVENCY_WINDOW;
        if (windDown.haircutFixed) return planned;
        return Math.max(planned, PauseLib.lastPauseEnd(context.bank) * 1000 + COVER_TIME);
    }

    /// @dev Rounded down. The full value if nothing is owed: the pool was empty, and no insolvency was reported.
    function _shareOf(uint256 value, WindDown memory windDown) private pure returns (uint256) {
        uint256 owed = uint256(windDown.poolAtEnd) + windDown.deficit;
        return owed == 0 ? value : Math.mulDiv(value, windDown.haircutPool, owed);
    }

    /// @dev Value in wei at the fixed price, rounded down; negative if the account is insolvent.
    function _valueOf(TraderState storage state, MarketContext calldata context, WindDown memory windDown, address account)
        private
        view
        returns (Position memory position, int256 value)
    {
        PositionLib.unpack(state.positions[account].bits, state.reference_.fundingIndex, position);
        Valuation memory valuation;
        valuation.oracleStepX = windDown.price * context.step;
        valuation.step = context.step;
        valuation.binary = context.kind == MarketKind.BinaryFuture;
        (int256 equityX,) = MarginLib.exposure(position, valuation);
        value = equityX / 1e18;
        if (equityX < 0 && equityX % 1e18 != 0) --value;
    }

    function _empty(TraderState storage state, address account, Position memory position) private {
        (position.size, position.entryNotional, position.margin) = (0, 0, 0);
        state.positions[account].bits = PositionLib.pack(position, 0, account);
    }

    /// @dev The market's reference, with the poked report if that is newer.
    function _newest(TraderState storage state) private view returns (Reference memory last) {
        last = state.reference_;
        Poked memory poked = state.poked;
        if (poked.observedAt > last.observedAt) (last.oraclePrice, last.observedAt) = (poked.price, poked.observedAt);
    }

    /// @dev Time of the operator's last heartbeat or action.
    function _lastActivity(TraderState storage state, WindDown memory windDown) private view returns (uint256) {
        return Math.max(windDown.heartbeatAt, state.clock.asOf);
    }

    function _requireNotEnded(WindDown memory windDown) private pure {
        if (windDown.endedAt != 0) revert IMarketWindDown.MarketEnded(windDown.endedAt);
    }

    function _requireNotClosed(Ending memory ending) private view {
        if (EndingLib.isClosed(ending, _now())) revert IMarketWindDown.MarketClosed(EndingLib.closesAt(ending));
    }

    function _requireEnded(WindDown memory windDown) private pure {
        if (windDown.endedAt == 0) revert IMarketWindDown.MarketNotEnded();
    }

    function _now() private view returns (uint48) {
        return uint48(block.timestamp * 1000);
    }
}
