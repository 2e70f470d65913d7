// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {BandLib} from "../../contracts/libraries/BandLib.sol";
import {Parameters} from "../../contracts/types/Market.sol";
import {Reference} from "../../contracts/types/TraderState.sol";

/// @title Properties of the allowed move between oracle reports, within the bounds of row U11 (contracts/README.md)
/// @custom:library BandLib
/// @custom:fuzzed test/contracts/invariants/Band.t.sol
contract MoveProofs {
    uint256 private constant PRICE_END = 1 << 96;
    uint256 private constant TIME_END = 1 << 48;
    uint256 private constant MILLION = 1e6;

    function _requireBounds(uint256 before, uint256 elapsed, Parameters memory parameters) private pure {
        require(before < PRICE_END && elapsed < TIME_END);
        require(parameters.moveBase <= MILLION && parameters.moveSlope <= MILLION);
        require(parameters.moveWindow >= 1_000 && parameters.moveWindow <= 60_000);
    }

    /// @notice A report at the time of the last one may not move the price.
    function noTimeAllowsNoMove(uint256 before, Parameters memory parameters) external pure {
        _requireBounds(before, 0, parameters);
        assert(BandLib.allowedMove(before, 0, parameters, false) == 0);
    }

    /// @notice The move is at most price x (base x min(elapsed, T) / T + slope x elapsed), and less than 1 wei below it.
    function moveIsTheShareRoundedDown(uint256 before, uint256 elapsed, Parameters memory parameters) external pure {
        _requireBounds(before, elapsed, parameters);
        uint256 allowed = BandLib.allowedMove(before, elapsed, parameters, false);
        uint256 window = parameters.moveWindow;
        uint256 based = elapsed < window ? elapsed : window;
        uint256 share = parameters.moveBase * based * 1000 + parameters.moveSlope * elapsed * window;
        assert(allowed * (window * 1000 * MILLION) <= before * share);
        assert((allowed + 1) * (window * 1000 * MILLION) > before * share);
    }

    /// @notice The move is at most price x (base + slope x elapsed), whatever T is.
    function moveIsAtMostBaseAndSlope(uint256 before, uint256 elapsed, Parameters memory parameters) external pure {
        _requireBounds(before, elapsed, parameters);
        uint256 allowed = BandLib.allowedMove(before, elapsed, parameters, false);
        assert(allowed * (1000 * MILLION) <= before * (uint256(parameters.moveBase) * 1000 + parameters.moveSlope * elapsed));
    }

    /// @notice A later report may move at least as far.
    function moveGrowsWithTime(uint256 before, uint256 elapsed, uint256 later, Parameters memory parameters) external pure {
        _requireBounds(before, later, parameters);
        require(elapsed <= later);
        assert(BandLib.allowedMove(before, elapsed, parameters, false) <= BandLib.allowedMove(before, later, parameters, false));
    }

    /// @dev Move x T x 1e9, before it is rounded.
    function _exact(uint256 before, uint256 elapsed, Parameters memory parameters) private pure returns (uint256) {
        _requireBounds(before, elapsed, parameters);
        uint256 window = parameters.moveWindow;
        uint256 based = elapsed < window ? elapsed : window;
        return before * (parameters.moveBase * based * 1000 + parameters.moveSlope * elapsed * window);
    }

    /// @notice With T = 1 s, one report may move at most 1 wei farther than two reports within the same time, each measured from
    /// the same price.
    function waitingGainsNothing(uint256 before, uint256 first, uint256 second, Parameters memory parameters) external pure {
        require(first < TIME_END && second < TIME_END && parameters.moveWindow == 1_000);
        // A step of the proof.
        uint256 exact = _exact(before, first, parameters) + _exact(before, second, parameters);
        assert(_exact(before, first + second, parameters) <= exact);
        uint256 once = BandLib.allowedMove(before, first + second, parameters, false);
        uint256 twice = BandLib.allowedMove(before, first, parameters, false) + BandLib.allowedMove(before, second, parameters, false);
        assert(once <= twice + 1);
    }

    /// @notice With T = 1 s, two reports within T, each measured from the same price, may not move farther than one report at
    /// the end.
    function splittingGainsNothing(uint256 before, uint256 first, uint256 second, Parameters memory parameters) external pure {
        require(first < TIME_END && second < TIME_END && parameters.moveWindow == 1_000);
        require(first + second <= 1_000);
        // A step of the proof.
        uint256 exact = _exact(before, first, parameters) + _exact(before, second, parameters);
        assert(_exact(before, first + second, parameters) == exact);
        uint256 once = BandLib.allowedMove(before, first + second, parameters, false);
        uint256 twice = BandLib.allowedMove(before, first, parameters, false) + BandLib.allowedMove(before, second, parameters, false);
        assert(twice <= once);
    }

    /// @notice A report that `checkReport` accepts after another one moves the price, in either direction, by at most
    /// price x (base x min(elapsed, T) / T + slope x elapsed).
    function acceptedReportMovesAsAllowed(
        uint256 asOf,
        uint256 price,
        uint256 observedAt,
        Reference memory last,
        Parameters memory parameters
    ) external pure {
        require(asOf < TIME_END && observedAt < TIME_END && price < PRICE_END && last.oraclePrice > 0);
        _requireBounds(last.oraclePrice, observedAt, parameters);
        BandLib.checkReport(asOf, price, observedAt, last, parameters, 0, false);
        uint256 move = price > last.oraclePrice ? price - last.oraclePrice : last.oraclePrice - price;
        uint256 unit = uint256(parameters.moveWindow) * 1000 * MILLION;
        assert(move * unit <= _exact(last.oraclePrice, observedAt - last.observedAt, parameters));
    }

    // ------------------------------------------------------------------ binary markets

    /// @notice The price of a binary market and its complement may move alike.
    function binaryMoveIsSymmetric(uint256 before, uint256 elapsed, Parameters memory parameters) external pure {
        _requireBounds(before, elapsed, parameters);
        require(before <= 1e18);
        uint256 allowed = BandLib.allowedMove(before, elapsed, parameters, true);
        assert(allowed == BandLib.allowedMove(1e18 - before, elapsed, parameters, true));
    }

    /// @notice The price of a binary market may move as far as a price of 0.5, at least, and of 1, at most.
    function binaryMoveIsBounded(uint256 before, uint256 elapsed, Parameters memory parameters) external pure {
        _requireBounds(before, elapsed, parameters);
        require(before <= 1e18);
        uint256 allowed = BandLib.allowedMove(before, elapsed, parameters, true);
        assert(allowed >= BandLib.allowedMove(5e17, elapsed, parameters, false));
        assert(allowed <= BandLib.allowedMove(1e18, elapsed, parameters, false));
    }

    /// @notice In a binary market that `ListingLib` lists, any price fits after 30 minutes.
    function binaryGapClosesWithinHalfAnHour(uint256 before, uint256 price, uint256 elapsed, Parameters memory parameters)
        external
        pure
    {
        _requireBounds(before, elapsed, parameters);
        require(before > 0 && before <= 1e18 && price > 0 && price <= 1e18 && elapsed >= 1_800_000);
        require(uint256(parameters.moveBase) + uint256(parameters.moveSlope) * 1_800 >= MILLION);
        uint256 window = parameters.moveWindow;
        // Steps of the proof: the share is at least 1.
        uint256 share = parameters.moveBase * window * 1000 + parameters.moveSlope * elapsed * window;
        assert(parameters.moveSlope * elapsed >= uint256(parameters.moveSlope) * 1_800_000);
        assert(share >= window * 1000 * MILLION);
        uint256 allowed = BandLib.allowedMove(before, elapsed, parameters, true);
        assert(price <= before || price - before <= allowed);
        assert(price >= before || before - price <= allowed);
    }
}
