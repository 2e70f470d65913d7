// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {IMarketChanges} from "../interfaces/IMarketChanges.sol";
import {MarketGrid, MarketKind, Parameters} from "../types/Market.sol";

/// @title Rules for the grid and the parameters of a market. They ensure that no notional and no fee rounds
library ListingLib {
    uint256 private constant MAX_LEVERAGE = 127;
    /// @dev 5 % of notional; for binary markets the coefficient is a fraction too.
    uint256 private constant MAX_FEE = 50_000;
    uint256 private constant MAX_REPORT_AGE = 60_000;
    /// @dev 4 % per hour.
    uint256 private constant MAX_FUNDING_CAP = 40_000;
    /// @dev IMR must exceed MMR by 0.75 percentage points: more than the liquidation buffer.
    uint256 private constant MIN_SPREAD = 7_500;
    uint256 private constant MILLION = 1e6;
    /// @dev Maximum of `moveBase` and of `moveSlope` (per second).
    uint256 private constant MAX_MOVE = 1e6;
    /// @dev Bounds of `moveWindow` in milliseconds. A shorter window would let a series of reports sum up `moveBase` within less
    /// than a second. After a longer one even a report as old as allowed could not have used all of `moveBase`.
    uint256 private constant MIN_MOVE_WINDOW = 1_000;
    uint256 private constant MAX_MOVE_WINDOW = MAX_REPORT_AGE;
    /// @dev Seconds after which a report of a binary market can have any price.
    uint256 private constant MAX_BINARY_GAP = 1_800;
    /// @dev Bound of tick and step. It keeps every product of settlement within 256 bits (rows U5 to U10 in contracts/README.md).
    uint256 private constant INCREMENT_END = 1 << 80;

    /// @notice tick x step x 1e-6 is whole wei; binary: tick divides 1, is a multiple of 1e-6, and tick^2 x step x 1e-6 is
    /// whole wei.
    function requireGrid(MarketGrid memory grid) internal pure {
        uint256 tick = grid.tick;
        uint256 step = grid.step;
        if (tick == 0 || step == 0 || tick >= INCREMENT_END || step >= INCREMENT_END) revert IIsolatedTrader.GridInvalid();
        bool valid = (tick * step) % 1e24 == 0;
        if (grid.kind == MarketKind.BinaryFuture) {
            // A tick that divides 1e18 is <= 1e18, so the product fits.
            valid = valid && 1e18 % tick == 0 && 1e18 / tick > 1 && tick % 1e12 == 0 && (tick * tick * step) % 1e42 == 0;
        }
        valid = valid && _isFinalRange(grid) && _isSessionFeed(grid) && _isFinalFeed(grid);
        if (!valid) revert IIsolatedTrader.GridInvalid();
    }

    /// @dev Only perpetuals have a session feed, and it differs from the price feed.
    function _isSessionFeed(MarketGrid memory grid) private pure returns (bool) {
        return grid.sessionFeedId == 0 || (grid.kind == MarketKind.Perpetual && grid.sessionFeedId != grid.feedId);
    }

    /// @dev Every market but a perpetual has a final feed of its own, which differs from the price feed.
    function _isFinalFeed(MarketGrid memory grid) private pure returns (bool) {
        bool isPerpetual = grid.kind == MarketKind.Perpetual;
        return (grid.finalFeedId == 0) == isPerpetual && grid.finalFeedId != grid.feedId;
    }

    /// @dev A perpetual has no final price; the final price of a binary market is exactly 0 or 1.
    function _isFinalRange(MarketGrid memory grid) private pure returns (bool) {
        if (grid.kind == MarketKind.Perpetual) return grid.finalLow == 0 && grid.finalHigh == 0;
        if (grid.kind == MarketKind.BinaryFuture) return grid.finalLow == 0 && grid.finalHigh == 1e18;
        return grid.finalLow < grid.finalHigh;
    }

    function requireParameters(Parameters memory p, MarketKind kind) internal pure {
        bool valid = p.mmr > 0 && p.imr >= p.mmr + MIN_SPREAD && p.maxLeverage > 0 && p.maxLeverage <= MAX_LEVERAGE
            && uint256(p.imr) * p.maxLeverage <= MILLION && p.mtbLong <= MILLION && p.mtbShort < MILLION
            && p.reportMaxAge > 0 && p.reportMaxAge <= MAX_REPORT_AGE;
        // An order reserves the fee at the taker rate, so the maker rate must not exceed it.
        valid = valid && p.makerFee <= p.takerFee && p.takerFee <= MAX_FEE;
        // At least one of both must allow a price move.
        valid = valid && p.moveBase <= MAX_MOVE && p.moveSlope <= MAX_MOVE && (p.moveBase | p.moveSlope) != 0;
        valid = valid && p.moveWindow >= MIN_MOVE_WINDOW && p.moveWindow <= MAX_MOVE_WINDOW;
        if (kind == MarketKind.BinaryFuture) valid = valid && p.moveBase + p.moveSlope * MAX_BINARY_GAP >= MILLION;
        valid = valid && p.fundingCap <= MAX_FUNDING_CAP && (p.fundingCap == 0 || kind == MarketKind.Perpetual);
        if (!valid) revert IMarketChanges.ParametersInvalid();
    }
}
