// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {BandLib} from "../../contracts/libraries/BandLib.sol";
import {Parameters} from "../../contracts/types/Market.sol";

/// @title Properties of `BandLib` within the bounds of rows U10 and U11 (contracts/README.md)
/// @custom:library BandLib
/// @custom:fuzzed test/parity/rules.test.ts
contract BandProofs {
    uint256 private constant PRICE_END = 1 << 96;
    uint256 private constant TICK_END = 1 << 80;

    function _requireBounds(uint256 price, uint256 tick, Parameters memory parameters) private pure {
        require(price > 0 && price < PRICE_END && tick > 0 && tick < TICK_END);
        require(parameters.mtbShort <= 1e6 && parameters.mtbLong <= 1e6);
    }

    /// @notice The band is not empty and within 1 and the highest tick.
    function bandIsNotEmpty(uint256 price, uint256 tick, Parameters memory parameters) external pure {
        _requireBounds(price, tick, parameters);
        (uint256 lowest, uint256 highest) = BandLib.band(price, tick, parameters, false);
        assert(1 <= lowest && lowest <= highest && highest <= BandLib.MAX_TICKS);
    }

    /// @notice The band of a binary market is at least one tick away from 0 and from 1.
    function binaryBandExcludesTheEnds(uint256 price, uint256 tick, Parameters memory parameters) external pure {
        _requireBounds(price, tick, parameters);
        require(price <= 1e18 && tick <= 5e17 && 1e18 % tick == 0);
        (uint256 lowest, uint256 highest) = BandLib.band(price, tick, parameters, true);
        assert(1 <= lowest && lowest <= highest && (highest + 1) * tick <= 1e18);
    }

    /// @notice The ticks next to the oracle price are inside, if they are within the range of ticks.
    function oraclePriceIsInside(uint256 price, uint256 tick, Parameters memory parameters) external pure {
        _requireBounds(price, tick, parameters);
        require(price >= tick && price / tick < BandLib.MAX_TICKS);
        (uint256 lowest, uint256 highest) = BandLib.band(price, tick, parameters, false);
        assert(lowest <= price / tick);
        assert(highest * tick >= price);
    }

    /// @notice The upper end rounds down, unless it is the tick next to the oracle price.
    function upperEndRoundsInward(uint256 price, uint256 tick, Parameters memory parameters) external pure {
        _requireBounds(price, tick, parameters);
        (, uint256 highest) = BandLib.band(price, tick, parameters, false);
        uint256 above = (price + tick - 1) / tick;
        assert(highest <= above || highest * (1e6 * tick) <= price * (1e6 + parameters.mtbLong));
    }

    /// @notice The lower end rounds up, unless it is the tick next to the oracle price or beyond the range of ticks.
    function lowerEndRoundsInward(uint256 price, uint256 tick, Parameters memory parameters) external pure {
        _requireBounds(price, tick, parameters);
        (uint256 lowest,) = BandLib.band(price, tick, parameters, false);
        uint256 below = price / tick;
        bool isEdge = lowest == below || lowest == BandLib.MAX_TICKS;
        assert(isEdge || lowest * (1e6 * tick) >= price * (1e6 - parameters.mtbShort));
    }

    /// @notice A wider band contains the narrower one: the upper end.
    function widerBandIsHigher(uint256 price, uint256 tick, Parameters memory narrow, uint24 longer) external pure {
        _requireBounds(price, tick, narrow);
        require(narrow.mtbLong <= longer && longer <= 1e6);
        (, uint256 highest) = BandLib.band(price, tick, narrow, false);
        narrow.mtbLong = longer;
        (, uint256 higher) = BandLib.band(price, tick, narrow, false);
        assert(highest <= higher);
    }

    /// @notice A wider band contains the narrower one: the lower end.
    function widerBandIsLower(uint256 price, uint256 tick, Parameters memory narrow, uint24 longer) external pure {
        _requireBounds(price, tick, narrow);
        require(narrow.mtbShort <= longer && longer <= 1e6);
        (uint256 lowest,) = BandLib.band(price, tick, narrow, false);
        narrow.mtbShort = longer;
        (uint256 lower,) = BandLib.band(price, tick, narrow, false);
        assert(lower <= lowest);
    }

    /// @notice A report that `checkAge` accepts is at most `maxAge` older and 2 s newer than the action.
    function acceptedReportIsFresh(uint256 asOf, uint256 observedAt, uint256 maxAge) external pure {
        require(asOf < 1 << 48 && observedAt < 1 << 48 && maxAge < 1 << 24);
        BandLib.checkAge(asOf, observedAt, maxAge);
        assert(observedAt <= asOf + 2_000 && asOf <= observedAt + maxAge);
    }
}
