// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {FundingLib} from "../../contracts/libraries/FundingLib.sol";
import {FundingRate} from "../../contracts/types/TraderState.sol";

/// @title Properties of `FundingLib` within the bounds of row U12 (contracts/README.md)
/// @custom:library FundingLib
/// @custom:fuzzed test/parity/funding.test.ts
contract FundingProofs {
    int256 private constant INDEX_END = 1 << 95;
    uint256 private constant TIME_END = 1 << 48;
    uint256 private constant HOUR = 3_600_000;

    function _requireRate(FundingRate memory running) private pure {
        require(running.rate > -INDEX_END && running.rate < INDEX_END);
        require(running.validFrom < running.validUntil && running.validUntil - running.validFrom <= HOUR);
    }

    function _requireIndex(int256 index) private pure {
        require(index > -INDEX_END && index < INDEX_END);
    }

    function _abs(int256 value) private pure returns (int256) {
        return value < 0 ? -value : value;
    }

    /// @notice The index does not change before a rate is valid, after it has ended, or within no time.
    function nothingAccruesOutside(FundingRate memory running, int256 index, uint256 from, uint256 to) external pure {
        _requireRate(running);
        _requireIndex(index);
        require(from < TIME_END && to < TIME_END);
        require(to <= running.validFrom || from >= running.validUntil || to <= from);
        assert(FundingLib.indexAt(running, index, from, to) == index);
    }

    /// @notice Accrual rounds toward zero: its absolute value is at most rate x time / 1 h, and less than 1 wei below it.
    function accrualRoundsTowardZero(FundingRate memory running, uint256 from, uint256 to) external pure {
        _requireRate(running);
        require(from >= running.validFrom && from < to && to <= running.validUntil);
        int256 grown = FundingLib.indexAt(running, 0, from, to);
        int256 exact = int256(running.rate) * int256(to - from);
        assert(exact >= 0 ? grown >= 0 : grown <= 0);
        assert(_abs(grown) * int256(HOUR) <= _abs(exact));
        assert((_abs(grown) + 1) * int256(HOUR) > _abs(exact));
    }

    /// @notice Accruing in two steps adds at most 1 wei less than in one step, and never more.
    function twoStepsLoseAtMostOneWei(FundingRate memory running, uint256 from, uint256 mid, uint256 to) external pure {
        _requireRate(running);
        require(from >= running.validFrom && from <= mid && mid <= to && to <= running.validUntil);
        int256 once = FundingLib.indexAt(running, 0, from, to);
        int256 twice = FundingLib.indexAt(running, FundingLib.indexAt(running, 0, from, mid), mid, to);
        assert(_abs(twice) <= _abs(once));
        assert(_abs(once) - _abs(twice) <= 1);
    }

    /// @notice A rate that `requireRoom` accepts keeps the index within its 96 bits until the rate ends.
    function acceptedRateHasRoom(FundingRate memory running, int256 index, uint256 to) external pure {
        _requireRate(running);
        _requireIndex(index);
        FundingLib.requireRoom(index, running.rate, running.validUntil - running.validFrom);
        require(to < TIME_END);
        int256 later = FundingLib.indexAt(running, index, running.validFrom, to);
        assert(later > -INDEX_END && later < INDEX_END);
    }

    /// @notice The range of the next rate is not empty and within the cap.
    function boundsAreWithinCap(FundingRate memory last, int256 cap, uint256 asOf) external pure {
        _requireRate(last);
        require(cap >= 0 && cap < INDEX_END && asOf >= last.validFrom && asOf < TIME_END);
        (int256 lowest, int256 highest) = FundingLib.bounds(last, cap, asOf);
        assert(-cap <= lowest && lowest <= highest && highest <= cap);
    }

    /// @notice The next rate is at most 2 x cap x elapsed / 45 min from the last one, clamped to the current cap.
    function boundsLimitTheSwing(FundingRate memory last, int256 cap, uint256 asOf) external pure {
        _requireRate(last);
        require(cap >= 0 && cap < INDEX_END && asOf >= last.validFrom && asOf < TIME_END);
        (int256 lowest, int256 highest) = FundingLib.bounds(last, cap, asOf);
        int256 rate = last.rate > cap ? cap : last.rate < -cap ? -cap : int256(last.rate);
        int256 swing = (2 * cap * int256(asOf - last.validFrom)) / 2_700_000;
        assert(lowest >= rate - swing && highest <= rate + swing);
    }

    /// @notice The cap rounds down and rises with the oracle price.
    function capRoundsDown(uint256 fraction, uint256 price, uint256 higher, uint256 step) external pure {
        require(fraction < 1 << 24 && price <= higher && higher < 1 << 96 && step < 1 << 80);
        int256 cap = FundingLib.capAt(fraction, price, step);
        assert(cap >= 0 && uint256(cap) * 1e24 <= fraction * price * step);
        assert(cap <= FundingLib.capAt(fraction, higher, step));
    }
}
