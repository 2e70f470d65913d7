// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {Position} from "../types/Position.sol";
import {Valuation} from "../types/Risk.sol";
import {PartTerms} from "../types/Settlement.sol";

/**
 * @title Equity and margin requirements
 * @notice Ratios are compared by cross-multiplication, so rounding never decides a comparison. Amounts named `…X` are
 * wei x 1e18 and exact. Twin of domain/positions/margin.ts.
 */
library MarginLib {
    /// @dev Requirements are in millionths.
    int256 internal constant MILLION = 1e6;
    /// @notice A position is eligible for liquidation if its ratio < MMR + LIQUIDATION_BUFFER. Millionths.
    uint256 internal constant LIQUIDATION_BUFFER = 5_000;

    /// @notice Equity, and the notional of the margin ratio: size x oracle price, or size x (1 - price) for a binary short.
    /// @param oracleStepX Oracle price of one step.
    /// @param step Quantity step x 1e18, which is also price 1 on one step.
    function exposure(Position memory position, uint256 oracleStepX, uint256 step, bool binary)
        internal
        pure
        returns (int256 equityX, uint256 notionalX)
    {
        unchecked { // U8
            int256 size = position.size;
            int256 entry = int256(position.entryNotional);
            if (size >= 0) {
                notionalX = uint256(size) * oracleStepX;
                equityX = (position.margin - entry) * 1e18 + int256(notionalX);
            } else {
                uint256 held = uint256(-size);
                uint256 valueX = held * oracleStepX;
                equityX = (position.margin + entry) * 1e18 - int256(valueX);
                // A binary oracle price is at most 1.
                notionalX = binary ? held * step * 1e18 - valueX : valueX;
            }
        }
    }

    /// @notice `exposure` with the valuation of a risk action.
    function exposure(Position memory position, Valuation memory valuation)
        internal
        pure
        returns (int256 equityX, uint256 notionalX)
    {
        return exposure(position, valuation.oracleStepX, valuation.step, valuation.binary);
    }

    /**
     * @notice Reverts unless the position is flat or its ratio >= IMR at the oracle price. Applies to an account if any of its
     * fills in the part opened. A fully collateralised binary position always passes: its equity covers its maximum loss, which
     * equals its notional.
     * @dev Call after `PositionLib.pack` has bounded the position. A run that only closes needs no check: its proceeds are not
     * negative, and the rounding of `PositionLib` never lowers the ratio of the remainder, so "no growth, no flip, ratio not
     * worse" holds.
     */
    function requireInitial(Position memory position, PartTerms memory terms, address account) internal pure {
        if (position.size == 0) return;
        (int256 equityX, uint256 notionalX) = exposure(position, terms.oracleStepX, terms.step, terms.binary);
        unchecked { // U9
            int256 required = int256(notionalX * terms.imr);
            if (equityX * MILLION >= required) return;
            revert ISettlementErrors.MarginInsufficient(account, required / MILLION, equityX);
        }
    }

    /// @notice Reverts unless the account's ratio at the oracle price < MMR + `LIQUIDATION_BUFFER`. Call before the account's
    /// fills. A fully collateralised binary position is never liquidatable: its equity covers its notional.
    /// @return equityX Before the fills.
    function requireLiquidatable(Position memory position, PartTerms memory terms, address account)
        internal
        pure
        returns (int256 equityX)
    {
        uint256 notionalX;
        (equityX, notionalX) = exposure(position, terms.oracleStepX, terms.step, terms.binary);
        unchecked { // U9
            int256 required = int256(notionalX * terms.liquidationRatio);
            if (equityX * MILLION < required) return equityX;
            revert ISettlementErrors.NotLiquidatable(account, equityX, required / MILLION);
        }
    }

    /// @notice Reverts unless the account has a position whose ratio at the oracle price < MMR: it may be inherited or
    /// deleveraged.
    function requireBelowMaintenance(Position memory position, Valuation memory valuation, address account)
        internal
        pure
        returns (int256 equityX)
    {
        uint256 notionalX;
        (equityX, notionalX) = exposure(position, valuation);
        int256 required = int256(notionalX * valuation.mmr);
        if (position.size == 0 || equityX * MILLION >= required) {
            revert ISettlementErrors.NotLiquidatable(account, equityX, required / MILLION);
        }
    }
}
