// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {BandLib} from "../../../contracts/libraries/BandLib.sol";
import {Parameters} from "../../../contracts/types/Market.sol";
import {Reference} from "../../../contracts/types/TraderState.sol";
import {holds, same, within} from "./Vm.sol";

/// @title Laws of the allowed move between oracle reports, for one report and for series of reports at the edge of it
contract BandFuzz {
    uint256 private constant SCALE = 1e24;
    uint256 private constant MAX_REPORTS = 40;

    /// @notice The rate of a market within the bounds of `ListingLib`.
    function _parameters(uint256 seed) private pure returns (Parameters memory parameters) {
        parameters.moveBase = uint24(within(seed, 0, 1e6));
        parameters.moveSlope = uint24(within(seed >> 32, parameters.moveBase == 0 ? 1 : 0, 1e6));
        parameters.moveWindow = uint16(within(seed >> 64, 1_000, 60_000));
    }

    /// @notice One report: exactly the documented fraction, rounded down once; it never shrinks with time.
    function testFuzz_oneReport(uint96 before, uint48 elapsed, uint256 seed) public pure {
        Parameters memory parameters = _parameters(seed);
        uint256 window = parameters.moveWindow;
        uint256 allowed = BandLib.allowedMove(before, elapsed, parameters, false);
        uint256 based = elapsed < window ? elapsed : window;
        // Millionths of `before`, times window and 1000.
        uint256 exact = before
            * (uint256(parameters.moveBase) * based * 1000 + uint256(parameters.moveSlope) * elapsed * window);
        uint256 unit = 1e9 * window;
        holds("rounded down", allowed * unit <= exact && exact < (allowed + 1) * unit);
        holds("grows with time", BandLib.allowedMove(before, uint256(elapsed) + 1, parameters, false) >= allowed);
        if (elapsed == 0) same("no time, no move", 0, int256(allowed));
    }

    /**
     * @notice A series of up to 40 reports, each moved as far as allowed, up or down. With the sum of shares S <= 1: the price
     * stays between 1 - S and 1 + S + S^2 >= e^S of the first, wherever the reports lie.
     */
    function testFuzz_series(uint96 start, uint256 seed, uint256 directions) public pure {
        Parameters memory parameters = _parameters(seed);
        uint256 first = within(start, 1e18, 1e27);
        uint256 price = first;
        uint256 spent;
        uint256 reports = within(seed >> 96, 1, MAX_REPORTS);
        uint256 rate = uint256(parameters.moveBase) * 1000 / parameters.moveWindow + parameters.moveSlope + 1;
        // As long as S may get, in milliseconds.
        uint256 longest = 1e9 / rate;
        for (uint256 i; i < reports && spent < longest; ++i) {
            uint256 gap = within(uint256(keccak256(abi.encode(seed, i))), 0, (longest - spent) / (seed % 3 == 0 ? reports : 1));
            uint256 move = BandLib.allowedMove(price, gap, parameters, false);
            bool rises = seed % 2 == 0 ? (directions >> i) & 1 == 1 : seed % 4 == 1;
            price = rises ? price + move : price - move;
            spent += gap;
        }
        // S x SCALE, rounded up.
        uint256 sum = (uint256(parameters.moveBase) * SCALE / 1e6 * spent) / parameters.moveWindow
            + (uint256(parameters.moveSlope) * SCALE / 1e6 * spent) / 1000 + 2;
        holds("S <= 1", sum <= SCALE + 2);
        holds("at most e^S", price <= first + (first * sum) / SCALE + (first * sum / SCALE) * sum / SCALE + 2);
        holds("at least 1 - S", price + reports >= first - (first * (sum > SCALE ? SCALE : sum)) / SCALE);
    }

    /// @notice A longer series at equal times reaches no more than its time allows: n reports in D ms against the bound for D.
    function testFuzz_moreReportsReachNoMore(uint256 seed, uint8 count) public pure {
        Parameters memory parameters = _parameters(seed);
        uint256 reports = within(count, 1, MAX_REPORTS);
        uint256 gap = within(seed >> 128, 1, parameters.moveWindow / reports);
        uint256 total;
        for (uint256 i; i < reports; ++i) total += BandLib.allowedMove(1e18, gap, parameters, false);
        // Within one window the shares add up to that of a single report over the whole time.
        holds("shares add up", total <= BandLib.allowedMove(1e18, gap * reports, parameters, false));
    }

    // ------------------------------------------------------------------ binary markets

    /// @dev Parameters that `ListingLib` lists for a binary market.
    function _binaryParameters(uint256 seed) private pure returns (Parameters memory parameters) {
        parameters = _parameters(seed);
        uint256 least = (1e6 - uint256(parameters.moveBase) + 1_799) / 1_800;
        if (parameters.moveSlope < least) parameters.moveSlope = uint24(least);
    }

    /// @notice A report may jump between any two prices 30 minutes after the last used one, and no later.
    function testFuzz_anyBinaryGapCloses(uint64 from, uint64 to, uint32 later, uint256 seed) public pure {
        Parameters memory parameters = _binaryParameters(seed);
        (uint256 before, uint256 next) = (within(from, 1, 1e18), within(to, 1, 1e18));
        Reference memory last;
        (last.oraclePrice, last.observedAt) = (uint96(before), 1);
        uint256 observedAt = 1 + 1_800_000 + uint256(later);
        parameters.reportMaxAge = 60_000;
        BandLib.checkReport(observedAt, next, observedAt, last, parameters, 1, true);
    }

    /// @notice The bet on the event and the bet against it move alike, and at least as far as half of a sure event.
    function testFuzz_binaryMovesAreSymmetric(uint64 from, uint48 elapsed, uint256 seed) public pure {
        Parameters memory parameters = _binaryParameters(seed);
        uint256 before = within(from, 1, 1e18 - 1);
        uint256 allowed = BandLib.allowedMove(before, elapsed, parameters, true);
        same("symmetric", int256(allowed), int256(BandLib.allowedMove(1e18 - before, elapsed, parameters, true)));
        uint256 half = BandLib.allowedMove(5e17, elapsed, parameters, false);
        holds("at least half of 1, at most 1", allowed >= half && allowed <= BandLib.allowedMove(1e18, elapsed, parameters, false));
    }

    /// @notice A series of up to 40 reports of a binary market moves the price by at most the sum of shares.
    function testFuzz_binarySeries(uint64 from, uint256 seed, uint256 directions) public pure {
        Parameters memory parameters = _binaryParameters(seed);
        uint256 first = within(from, 1, 1e18);
        uint256 price = first;
        uint256 sum;
        for (uint256 i; i < MAX_REPORTS; ++i) {
            uint256 gap = within(uint256(keccak256(abi.encode(seed, i))), 0, 500);
            uint256 move = BandLib.allowedMove(price, gap, parameters, true);
            // Of 1: the share itself, rounded up.
            sum += BandLib.allowedMove(1e18, gap, parameters, false) + 1;
            if ((directions >> i) & 1 == 1) price = price + move > 1e18 ? 1e18 : price + move;
            else price = price > move ? price - move : 1;
        }
        holds("at most S", price > first ? price - first <= sum : first - price <= sum);
    }
}
