// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarketRisk} from "../interfaces/IMarketRisk.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Position} from "../types/Position.sol";
import {Report} from "../types/Report.sol";
import {DeleveragedLeg, Inheritance, InheritanceFailure, RiskTerms, Valuation} from "../types/Risk.sol";
import {TraderState} from "../types/TraderState.sol";
import {ActionKind, ActionLib} from "./ActionLib.sol";
import {BackstopLib} from "./BackstopLib.sol";
import {DeleverageLib} from "./DeleverageLib.sol";
import {LedgerCall} from "./LedgerCall.sol";
import {MarginLib} from "./MarginLib.sol";
import {PauseLib} from "./PauseLib.sol";
import {PositionLib} from "./PositionLib.sol";
import {ReportLib} from "./ReportLib.sol";

/// @title Inheritance and deleveraging on a market's storage. Inlined into `MarketExtension` to save the gas of a linked call
library LiquidationLib {
    /// @dev The memory that all legs of a deleveraging share.
    struct DeleverageContext {
        Valuation valuation;
        int256 fundingIndex;
        /// Position of the account; each leg reduces it.
        Position position;
        DeleverageLib.Rank rank;
        DeleveragedLeg[] legs;
    }

    // ------------------------------------------------------------------ backstop

    function inheritPosition(
        TraderState storage state,
        MarketContext calldata context,
        uint256 actionId,
        uint256 asOf,
        address account,
        Report calldata report
    ) internal {
        ActionLib.Action memory action = ActionLib.Action(state.clock, state.reference_, state.parameters);
        ActionLib.begin(action, state, context.expiresAt, actionId, asOf, ActionKind.InheritPosition);
        Valuation memory valuation = ReportLib.accept(action, context, report);
        ActionLib.save(state, action);

        // Check: the account is below MMR, and had time to add margin after a pause.
        int256 fundingIndex = action.reference_.fundingIndex;
        RiskTerms memory terms = state.riskTerms;
        BackstopLib.requireOther(terms, account);
        Position memory position = _load(state, account, fundingIndex);
        if (MarginLib.requireBelowMaintenance(position, valuation, account) > 0) {
            PauseLib.requireGraceOver(context.bank, asOf, account);
        }

        // Effect: the whole position moves, or nothing.
        Position memory held = _load(state, terms.backstop, fundingIndex);
        (Position memory merged, Inheritance memory result) =
            BackstopLib.inherit(held, position, terms, valuation, context.bank);
        if (result.failure != InheritanceFailure.None) {
            emit IMarketRisk.BackstopInheritanceFailed(
                actionId,
                account,
                terms.backstop,
                ReportLib.termsOf(action),
                result.failure,
                result.needed,
                result.available
            );
        } else {
            emit IMarketRisk.PositionInherited(
                actionId,
                account,
                terms.backstop,
                ReportLib.termsOf(action),
                int64(position.size),
                uint96(position.entryNotional),
                position.margin,
                int96(result.freeDelta)
            );
            _store(state, terms.backstop, merged, fundingIndex);
            _empty(state, account, position, fundingIndex);
            LedgerCall.move(context.bank, asOf, terms.backstop, result.freeDelta);
        }
        ActionLib.requireTimely(asOf);
    }

    // ------------------------------------------------------------------ deleveraging

    function deleverage(
        TraderState storage state,
        MarketContext calldata context,
        uint256 actionId,
        uint256 asOf,
        address account,
        address[] calldata counterparties,
        uint256[] calldata steps,
        Report calldata report
    ) internal {
        ActionLib.Action memory action = ActionLib.Action(state.clock, state.reference_, state.parameters);
        ActionLib.begin(action, state, context.expiresAt, actionId, asOf, ActionKind.Deleverage);
        DeleverageContext memory ongoing;
        ongoing.valuation = ReportLib.accept(action, context, report);
        ActionLib.save(state, action);

        // Check: no equity left, or the account had time to add margin after a pause and the backstop cannot inherit.
        ongoing.fundingIndex = action.reference_.fundingIndex;
        ongoing.position = _load(state, account, ongoing.fundingIndex);
        _requireDeleverageable(state, context, ongoing, asOf, account);
        DeleverageLib.requireDistinct(counterparties, steps);

        // Effect: close each leg, then credit all counterparties in one bank call.
        ongoing.legs = new DeleveragedLeg[](counterparties.length);
        for (uint256 i; i < counterparties.length; ++i) {
            _closeLeg(state, ongoing, ongoing.legs[i], counterparties[i], steps[i]);
        }
        _store(state, account, ongoing.position, ongoing.fundingIndex);
        emit IMarketRisk.PositionsDeleveraged(actionId, account, ReportLib.termsOf(action), ongoing.legs);
        _payOut(context, asOf, ongoing.legs);
        ActionLib.requireTimely(asOf);
    }

    /// @dev Checks one counterparty, closes against it and stores its position. Skips a counterparty that does not qualify.
    function _closeLeg(
        TraderState storage state,
        DeleverageContext memory ongoing,
        DeleveragedLeg memory leg,
        address counterparty,
        uint256 asked
    ) private {
        leg.counterparty = counterparty;
        Position memory other = _load(state, counterparty, ongoing.fundingIndex);
        if (!DeleverageLib.opposes(ongoing.position, other)) return;
        (bool qualifies, uint256 score) = DeleverageLib.score(other, ongoing.valuation);
        if (!qualifies) return;
        DeleverageLib.requireRank(ongoing.rank, counterparty, score);

        (uint256 steps, uint256 payout) = DeleverageLib.closeAgainst(ongoing.position, other, asked);
        if (steps == 0) return;
        _store(state, counterparty, other, ongoing.fundingIndex);
        leg.steps = uint64(steps);
        leg.payout = uint96(payout);
    }

    function _requireDeleverageable(
        TraderState storage state,
        MarketContext calldata context,
        DeleverageContext memory ongoing,
        uint256 asOf,
        address account
    ) private view {
        int256 equityX = MarginLib.requireBelowMaintenance(ongoing.position, ongoing.valuation, account);
        if (equityX <= 0) return;
        PauseLib.requireGraceOver(context.bank, asOf, account);
        RiskTerms memory terms = state.riskTerms;
        Position memory held = _load(state, terms.backstop, ongoing.fundingIndex);
        BackstopLib.requireUnable(held, ongoing.position, terms, ongoing.valuation, context.bank, account, equityX);
    }

    function _payOut(MarketContext calldata context, uint256 asOf, DeleveragedLeg[] memory legs) private {
        (uint256 from, uint256 next) = LedgerCall.start(legs.length);
        for (uint256 i; i < legs.length; ++i) {
            next = LedgerCall.push(next, legs[i].counterparty, int256(uint256(legs[i].payout)));
        }
        LedgerCall.send(from, next, context.bank, asOf, 0);
    }

    // ------------------------------------------------------------------ internals

    function _load(TraderState storage state, address account, int256 fundingIndex)
        private
        view
        returns (Position memory position)
    {
        PositionLib.unpack(state.positions[account].bits, fundingIndex, position);
    }

    function _store(TraderState storage state, address account, Position memory position, int256 fundingIndex) private {
        state.positions[account].bits = PositionLib.pack(position, fundingIndex, account);
    }

    /// @dev Keeps leverage and `FLOORS_BIT`, so that the slot does not return to zero.
    function _empty(TraderState storage state, address account, Position memory position, int256 fundingIndex) private {
        (position.size, position.entryNotional, position.margin) = (0, 0, 0);
        _store(state, account, position, fundingIndex);
    }
}
