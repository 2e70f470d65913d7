// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IPriceOracle} from "../interfaces/IPriceOracle.sol";
import {MarketKind} from "../types/Market.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Report} from "../types/Report.sol";
import {ActionTerms, Valuation} from "../types/Risk.sol";
import {Reference} from "../types/TraderState.sol";
import {ActionLib} from "./ActionLib.sol";
import {BandLib} from "./BandLib.sol";

/// @title The oracle report of an action: verification, checks, and storing it as the market's last report
library ReportLib {
    /**
     * @notice Reverts unless the oracle verifies the report. A report equal to the market's last one was verified before and is
     * not verified again. Call after `BandLib.checkReport`: it rejects price 0, so a market without a last report cannot match.
     */
    function requireProven(
        IPriceOracle oracle,
        bytes32 feedId,
        Reference memory last,
        uint256 price,
        uint256 observedAt,
        bytes calldata proof
    ) internal view {
        if (price == last.oraclePrice && observedAt == last.observedAt) return;
        oracle.verify(feedId, price, observedAt, proof);
    }

    /// @notice For actions other than batches: checks the report and puts it into the action's reference. `ActionLib.save`
    /// writes it to storage.
    function accept(ActionLib.Action memory action, MarketContext calldata context, Report calldata report)
        internal
        view
        returns (Valuation memory)
    {
        Reference memory last = action.reference_;
        (uint96 price, uint48 observedAt) = (report.price, report.observedAt);
        bool binary = context.kind == MarketKind.BinaryFuture;
        BandLib.checkReport(action.clock.asOf, price, observedAt, last, action.parameters, context.tick, binary);
        requireProven(context.oracle, context.feedId, last, price, observedAt, report.proof);
        last.oraclePrice = price;
        last.observedAt = observedAt;
        return Valuation({
            oracleStepX: price * context.step,
            step: context.step,
            binary: binary,
            imr: action.parameters.imr,
            mmr: action.parameters.mmr
        });
    }

    /// @notice The terms of the action, for its event.
    function termsOf(ActionLib.Action memory action) internal pure returns (ActionTerms memory) {
        return ActionTerms({
            asOf: action.clock.asOf,
            oraclePrice: action.reference_.oraclePrice,
            observedAt: action.reference_.observedAt,
            fundingIndex: action.reference_.fundingIndex
        });
    }
}
