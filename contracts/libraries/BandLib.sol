// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {Parameters} from "../types/Market.sol";
import {Reference} from "../types/TraderState.sol";
import {AHEAD} from "../types/Durations.sol";

/// @title Where a batch may clear, and which report may say so. Twin of domain/band.ts
library BandLib {
    uint256 internal constant MILLION = 1e6;
    uint256 internal constant MAX_TICKS = type(uint40).max;

    /// @notice O(1 - mtbShort) to O(1 + mtbLong), rounded inward to ticks but never past the ticks around O; a binary market
    /// clears at least a tick away from 0 and 1. Both ends included.
    function band(uint256 oraclePrice, uint256 tick, Parameters memory parameters, bool binary)
        internal
        pure
        returns (uint256 lowest, uint256 highest)
    {
        // Prices are below 2^96 and ticks below 2^80; a binary tick divides 1 and a band is at most 100 %, by the listing rules.
        unchecked {
            uint256 top = binary ? 1e18 / tick - 1 : MAX_TICKS;
            uint256 below = oraclePrice / tick;
            uint256 above = (oraclePrice + tick - 1) / tick;
            uint256 unit = MILLION * tick;
            lowest = (oraclePrice * (MILLION - parameters.mtbShort) + unit - 1) / unit;
            highest = (oraclePrice * (MILLION + parameters.mtbLong)) / unit;
            lowest = _clamp(lowest < below ? lowest : below, top);
            highest = _clamp(highest > above ? highest : above, top);
        }
    }

    function _clamp(uint256 ticks, uint256 top) private pure returns (uint256) {
        return ticks == 0 ? 1 : ticks > top ? top : ticks;
    }

    /// @notice Refuses a report that is out of date, older than the one used last, at odds with it, or a leap away from it.
    function checkReport(
        uint256 asOf,
        uint256 price,
        uint256 observedAt,
        Reference memory last,
        Parameters memory parameters,
        bool binary
    ) internal pure {
        if (price == 0 || (binary && price > 1e18)) revert ISettlementErrors.ReportPriceInvalid(price);
        checkAge(asOf, observedAt, parameters.reportMaxAge);

        uint256 before = last.oraclePrice;
        if (before == 0) return;
        if (observedAt < last.observedAt) revert ISettlementErrors.ReportOlder(last.observedAt, observedAt);
        if (observedAt == last.observedAt && price != before) {
            revert ISettlementErrors.ReportConflict(observedAt, before, price);
        }
        // 96 bits of price times at most 63 of share.
        unchecked {
            uint256 share = parameters.moveBase + (uint256(parameters.moveSlope) * (observedAt - last.observedAt)) / 1000;
            uint256 allowed = (before * share) / MILLION;
            uint256 move = price > before ? price - before : before - price;
            if (move > allowed) revert ISettlementErrors.ReportMoveTooLarge(before, price, allowed);
        }
    }

    function checkAge(uint256 asOf, uint256 observedAt, uint256 maxAge) internal pure {
        if (observedAt > asOf + AHEAD) revert ISettlementErrors.ReportAhead(asOf, observedAt);
        if (asOf > observedAt + maxAge) revert ISettlementErrors.ReportStale(asOf, observedAt, maxAge);
    }
}
