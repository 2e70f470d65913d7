// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {Position} from "../types/Position.sol";
import {Inheritance, InheritanceFailure, RiskTerms, Valuation} from "../types/Risk.sol";
import {MarginLib} from "./MarginLib.sol";
import {PositionLib} from "./PositionLib.sol";

/**
 * @title What a backstop would hold after inheriting, and whether it can. Twin of domain/liquidation.ts
 * @dev Unchecked, because positions come out of storage, whose widths `PositionLib` states: sums of two stay below 2^151, and a
 * free balance below 2^96. Requirements are bounded as in `MarginLib`.
 */
library BackstopLib {
    /// @dev Millionths x 1e18.
    uint256 private constant MILLION_X = 1e24;

    /**
     * @notice Two positions as one, worth at every price exactly what they were worth apart. Sides that agree add up. Sides
     * that oppose net: the entries of the closed shares become margin, and the rest's entry rounds for the rest as in a
     * partial close. Without size, margin of either sign may be left.
     */
    function merge(Position memory held, Position memory added) internal pure returns (Position memory merged) {
        unchecked {
            merged.size = held.size + added.size;
            merged.margin = held.margin + added.margin;
            merged.leverage = held.leverage == 0 ? added.leverage : held.leverage;
            merged.hasFloors = held.hasFloors;
            if (held.size == 0 || added.size == 0 || (held.size > 0) == (added.size > 0)) {
                merged.entryNotional = held.entryNotional + added.entryNotional;
                return merged;
            }
            (Position memory larger, Position memory smaller) =
                PositionLib.abs(held.size) >= PositionLib.abs(added.size) ? (held, added) : (added, held);
            bool long = larger.size > 0;
            (, uint256 closedEntry) = PositionLib.closedShare(larger, PositionLib.abs(smaller.size), long);
            merged.entryNotional = larger.entryNotional - closedEntry;
            int256 realised = int256(smaller.entryNotional) - int256(closedEntry);
            merged.margin += long ? realised : -realised;
        }
    }

    /// @notice Judges whether the backstop can take `position` over, and into what: `merged` then has its margin after the
    /// change of the free balance.
    function inherit(
        Position memory held,
        Position memory position,
        RiskTerms memory terms,
        Valuation memory valuation,
        IMarginBank bank
    ) internal view returns (Position memory merged, Inheritance memory result) {
        if (terms.backstop == address(0)) {
            result.failure = InheritanceFailure.NoBackstop;
            return (merged, result);
        }
        merged = merge(held, position);
        (int256 equityX, uint256 notionalX) = MarginLib.exposure(merged, valuation);
        unchecked {
            bool grows = PositionLib.abs(merged.size) > PositionLib.abs(held.size);
            uint256 notional = (notionalX + 1e18 - 1) / 1e18;
            if (grows && notional > terms.backstopCap) {
                _fail(result, InheritanceFailure.CapExceeded, notional, terms.backstopCap);
                return (merged, result);
            }

            int256 freeDelta =
                merged.size == 0 ? merged.margin : -int256(missingMargin(equityX, notionalX, valuation.imr));
            // What comes in needs nothing there.
            uint256 available = freeDelta < 0 ? bank.account(terms.backstop).free : 0;
            if (freeDelta < 0 && int256(available) + freeDelta < 0) {
                _fail(result, InheritanceFailure.FreeBalanceShort, uint256(-freeDelta), available);
                return (merged, result);
            }
            result.freeDelta = freeDelta;
            merged.margin -= freeDelta;
        }
    }

    /// @notice Wei that bring a position to IMR, up; 0 where it is there.
    function missingMargin(int256 equityX, uint256 notionalX, uint256 imr) internal pure returns (uint256) {
        unchecked {
            int256 missing = int256(notionalX * imr) - equityX * MarginLib.MILLION;
            return missing <= 0 ? 0 : (uint256(missing) + MILLION_X - 1) / MILLION_X;
        }
    }

    function _fail(Inheritance memory result, InheritanceFailure failure, uint256 needed, uint256 available)
        private
        pure
    {
        (result.failure, result.needed, result.available) = (failure, needed, available);
    }
}
