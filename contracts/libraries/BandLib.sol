// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {AHEAD} from "../types/Durations.sol";
import {Parameters} from "../types/Market.sol";
import {Reference} from "../types/TraderState.sol";

/// @title Price band of a batch, and checks of an oracle report. Twin of domain/market/band.ts and domain/prices/report.ts
library BandLib {
    uint256 internal constant MILLION = 1e6;
    uint256 internal constant MAX_TICKS = type(uint40).max;

    /// @notice O(1 - mtbShort) to O(1 + mtbLong), both ends included. Rounded inward to ticks, but the ticks next to O are always
    /// inside. A binary market clears at least one tick away from 0 and 1.
    function band(uint256 oraclePrice, uint256 tick, Parameters memory parameters, bool binary)
        internal
        pure
        returns (uint256 lowest, uint256 highest)
    {
        unchecked { // U10
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

    /// @notice Reverts if the report is outdated, older than the market's last report, has its time but another price, or moved
    /// too far from it. The price of a binary market is from one tick to 1.
    function checkReport(
        uint256 asOf,
        uint256 price,
        uint256 observedAt,
        Reference memory last,
        Parameters memory parameters,
        uint256 tick,
        bool binary
    ) internal pure {
        if (price == 0 || (binary && (price < tick || price > 1e18))) revert ISettlementErrors.ReportPriceInvalid(price);
        checkAge(asOf, observedAt, parameters.reportMaxAge);

        uint256 before = last.oraclePrice;
        if (before == 0) return;
        if (observedAt < last.observedAt) revert ISettlementErrors.ReportOlder(last.observedAt, observedAt);
        if (observedAt == last.observedAt && price != before) {
            revert ISettlementErrors.ReportConflict(observedAt, before, price);
        }
        unchecked { // U11
            uint256 allowed = allowedMove(before, observedAt - last.observedAt, parameters, binary);
            uint256 move = price > before ? price - before : before - price;
            if (move > allowed) revert ISettlementErrors.ReportMoveTooLarge(before, price, allowed);
        }
    }

    /**
     * @notice Maximum move from the price `before` to a report that was observed `elapsed` milliseconds (D) later, with
     * T = `moveWindow`: base x (moveBase x min(D, T) / T + moveSlope x D / 1 s). Exact, and rounded down once, to a wei. The base
     * is the price; of a binary market the larger of the price and 1 - price, so that the bet on the event and the bet against
     * it move alike, and a price near 0 can leave it.
     *
     * What n reports within D can reach: report i comes D_i after the one before and may move by the share s_i. As min(D_i, T)
     * is at most D_i and at most T, the sum S of all s_i is at most moveBase x min(n, D / T) + moveSlope x D. Each price is at
     * most 1 + s_i and at least 1 - s_i times the one before. The last price is therefore at most e^S and at least 1 - S times
     * the first, however many reports there are. No allowance is used up: a report that repeats the price shortens the time of
     * the next one, and costs it nothing else. In a binary market the base is at most 1, so the last price is at most S away from
     * the first. As every other price is at most the base away, a report can have any price once S of one report is 1:
     * `ListingLib` ensures that after 30 minutes.
     */
    function allowedMove(uint256 before, uint256 elapsed, Parameters memory parameters, bool binary)
        internal
        pure
        returns (uint256)
    {
        unchecked { // U11
            uint256 window = parameters.moveWindow;
            uint256 based = elapsed < window ? elapsed : window;
            // Millionths x 1000 x window.
            uint256 share = parameters.moveBase * based * 1000 + parameters.moveSlope * elapsed * window;
            if (binary && before < 5e17) before = 1e18 - before;
            return (before * share) / (window * 1000 * MILLION);
        }
    }

    function checkAge(uint256 asOf, uint256 observedAt, uint256 maxAge) internal pure {
        if (observedAt > asOf + AHEAD) revert ISettlementErrors.ReportAhead(asOf, observedAt);
        if (asOf > observedAt + maxAge) revert ISettlementErrors.ReportStale(asOf, observedAt, maxAge);
    }
}
