// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarginBank} from "../interfaces/IMarginBank.sol";
import {IMarketRisk} from "../interfaces/IMarketRisk.sol";
import {Position} from "../types/Position.sol";
import {Inheritance, InheritanceFailure, RiskTerms, Valuation} from "../types/Risk.sol";
import {MarginLib} from "./MarginLib.sol";
import {PositionLib} from "./PositionLib.sol";

/**
 * @title Position of a backstop after an inheritance, and the checks of it. Twin of domain/risk/liquidation.ts
 * @dev Positions come from storage, so the field widths of `PositionLib` bound them: sums of two are < 2^151. A free balance is
 * < 2^96. Requirements are bounded as in `MarginLib`.
 */
library BackstopLib {
    /// @dev Millionths x 1e18.
    uint256 private constant MILLION_X = 1e24;

    /**
     * @notice Merges two positions into one whose equity equals the sum of both at every price. Positions of one side add up.
     * Opposite positions net: the entry notional of the closed shares becomes margin, and the entry of the remainder rounds as
     * in a partial close. If the size nets to zero, the margin left may have either sign.
     */
    function merge(Position memory held, Position memory added) internal pure returns (Position memory merged) {
        unchecked { // U13
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

    /// @notice Checks whether the backstop can inherit `position`. On success the margin of `merged` includes the change of the
    /// backstop's free balance.
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
        unchecked { // U13
            bool grows = PositionLib.abs(merged.size) > PositionLib.abs(held.size);
            uint256 notional = (notionalX + 1e18 - 1) / 1e18;
            if (grows && notional > terms.backstopCap) {
                _fail(result, InheritanceFailure.CapExceeded, notional, terms.backstopCap);
                return (merged, result);
            }

            int256 freeDelta =
                merged.size == 0 ? merged.margin : -int256(missingMargin(equityX, notionalX, valuation.imr));
            // The free balance is read only for a debit.
            uint256 available = freeDelta < 0 ? bank.account(terms.backstop).free : 0;
            if (freeDelta < 0 && int256(available) + freeDelta < 0) {
                _fail(result, InheritanceFailure.FreeBalanceShort, uint256(-freeDelta), available);
                return (merged, result);
            }
            result.freeDelta = freeDelta;
            merged.margin -= freeDelta;
        }
    }

    /// @notice Reverts for the backstop's own account, which cannot inherit from itself.
    function requireOther(RiskTerms memory terms, address account) internal pure {
        if (account == terms.backstop) revert IMarketRisk.BackstopItself(account);
    }

    /// @notice Reverts if the backstop can inherit: an account with equity is deleveraged only if it cannot. Reverts for the
    /// backstop's own account too, whose positions only forced orders may reduce.
    function requireUnable(
        Position memory held,
        Position memory position,
        RiskTerms memory terms,
        Valuation memory valuation,
        IMarginBank bank,
        address account,
        int256 equityX
    ) internal view {
        InheritanceFailure failure;
        if (account != terms.backstop) {
            (, Inheritance memory result) = inherit(held, position, terms, valuation, bank);
            failure = result.failure;
        }
        if (failure == InheritanceFailure.None) revert IMarketRisk.BackstopFirst(account, terms.backstop, equityX);
    }

    /// @notice Margin in wei that raises a position to IMR, rounded up; 0 if it meets IMR.
    function missingMargin(int256 equityX, uint256 notionalX, uint256 imr) internal pure returns (uint256) {
        unchecked { // U13
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
