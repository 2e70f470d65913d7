// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarginLib} from "../../contracts/libraries/MarginLib.sol";
import {Position} from "../../contracts/types/Position.sol";
import {PartTerms} from "../../contracts/types/Settlement.sol";

/// @title Properties of `MarginLib` within the bounds of rows U8 and U9 (contracts/README.md)
/// @custom:library MarginLib
/// @custom:fuzzed test/parity/position.test.ts
contract MarginProofs {
    int256 private constant SIZE_END = 1 << 53;
    uint256 private constant STEP_END = 1 << 80;
    uint256 private constant STEP_VALUE_END = 1 << 176;

    function _requireBounds(Position memory position) private pure {
        require(position.size > -SIZE_END && position.size < SIZE_END && position.entryNotional < 1 << 92);
        require(position.margin > -(1 << 149) && position.margin < 1 << 149);
    }

    /// @notice The equity of a long never falls, and that of a short never rises, when the price rises.
    function equityFollowsThePrice(Position memory position, uint256 low, uint256 high, uint256 step) external pure {
        _requireBounds(position);
        require(low <= high && high < STEP_VALUE_END && step < STEP_END);
        (int256 atLow,) = MarginLib.exposure(position, low, step, false);
        (int256 atHigh,) = MarginLib.exposure(position, high, step, false);
        assert(position.size >= 0 ? atLow <= atHigh : atLow >= atHigh);
    }

    /// @notice A long and a short of the same size have together the same equity at every price, to the wei.
    function oppositeEquitiesCancel(Position memory long, Position memory short, uint256 price, uint256 step)
        external
        pure
    {
        _requireBounds(long);
        _requireBounds(short);
        require(long.size > 0 && short.size == -long.size && price < STEP_VALUE_END && step < STEP_END);
        (int256 longX,) = MarginLib.exposure(long, price, step, false);
        (int256 shortX,) = MarginLib.exposure(short, price, step, false);
        int256 paidIn = long.margin + short.margin + int256(short.entryNotional) - int256(long.entryNotional);
        assert(longX + shortX == paidIn * 1e18);
    }

    /// @notice The notional of a binary short at price p is the one of a long at 1 - p.
    function binaryShortIsALongOfNo(uint256 size, uint256 price, uint256 step) external pure {
        require(size > 0 && size < uint256(SIZE_END) && price <= 1e18 && step < STEP_END);
        Position memory short = Position(-int256(size), 0, 0, 1, false);
        (, uint256 notionalX) = MarginLib.exposure(short, price * step, step, true);
        assert(notionalX == size * ((1e18 - price) * step));
    }

    /// @notice A fully collateralised binary short has equity equal to its notional, so it meets every requirement.
    function coveredShortMeetsEveryRequirement(uint256 size, uint256 entry, uint256 price, uint256 step) external pure {
        require(size > 0 && size < uint256(SIZE_END) && entry < 1 << 92 && price <= 1e18 && step < STEP_END);
        require(size * step < 1 << 140 && entry <= size * step);
        // Margin: the maximum loss, 1 per unit less the price at which it was sold.
        int256 margin = int256(size * step - entry);
        Position memory short = Position(-int256(size), entry, margin, 1, false);
        (int256 equityX, uint256 notionalX) = MarginLib.exposure(short, price * step, step, true);
        assert(equityX >= 0 && uint256(equityX) == notionalX);
    }

    /// @notice No position passes both checks, if IMR >= MMR + buffer: what may be opened is not liquidatable.
    function openedIsNotLiquidatable(Position memory position, PartTerms memory terms) external pure {
        _requireBounds(position);
        require(position.size != 0 && terms.oracleStepX < STEP_VALUE_END && terms.step < STEP_END);
        require(!terms.binary && terms.imr < 1 << 24 && terms.liquidationRatio <= terms.imr);
        MarginLib.requireInitial(position, terms, address(0));
        MarginLib.requireLiquidatable(position, terms, address(0));
        assert(false);
    }

    /// @notice A position without size and debt is never liquidatable.
    function flatIsNotLiquidatable(Position memory position, PartTerms memory terms) external pure {
        _requireBounds(position);
        require(position.size == 0 && position.entryNotional == 0 && position.margin >= 0);
        require(terms.oracleStepX < STEP_VALUE_END && terms.step < STEP_END && terms.liquidationRatio < 1 << 25);
        MarginLib.requireLiquidatable(position, terms, address(0));
        assert(false);
    }
}
