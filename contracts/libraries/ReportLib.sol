// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketContext} from "../types/MarketContext.sol";
import {MarketKind} from "../types/Market.sol";
import {Report} from "../types/Report.sol";
import {ActionTerms, Valuation} from "../types/Risk.sol";
import {ActionLib} from "./ActionLib.sol";
import {BandLib} from "./BandLib.sol";

/// @title The report of an action that is not a batch: verified, judged and kept like a batch's
library ReportLib {
    /// @notice Puts the report into the action's reference; `ActionLib.save` writes it.
    function take(ActionLib.Action memory action, MarketContext memory context, Report calldata report)
        internal
        view
        returns (Valuation memory)
    {
        bool binary = context.grid.kind == MarketKind.BinaryFuture;
        BandLib.checkReport(
            action.clock.asOf, report.price, report.observedAt, action.reference_, action.parameters, binary
        );
        context.oracle.verify(context.grid.feedId, report.price, report.observedAt, report.proof);
        action.reference_.oraclePrice = report.price;
        action.reference_.observedAt = report.observedAt;
        return valuation(action, context, report.price);
    }

    /// @notice What positions are measured with at `price`.
    function valuation(ActionLib.Action memory action, MarketContext memory context, uint256 price)
        internal
        pure
        returns (Valuation memory)
    {
        return Valuation({
            oracleStepX: price * context.grid.step,
            step: context.grid.step,
            binary: context.grid.kind == MarketKind.BinaryFuture,
            imr: action.parameters.imr,
            mmr: action.parameters.mmr
        });
    }

    /// @notice For the action's event.
    function termsOf(ActionLib.Action memory action) internal pure returns (ActionTerms memory) {
        return ActionTerms({
            asOf: action.clock.asOf,
            oraclePrice: action.reference_.oraclePrice,
            observedAt: action.reference_.observedAt,
            fundingIndex: action.reference_.fundingIndex
        });
    }
}
