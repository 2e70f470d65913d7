// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {Position} from "../types/Position.sol";
import {Valuation} from "../types/Risk.sol";
import {PartTerms} from "../types/Settlement.sol";

/**
 * @title Equity and the requirements on it
 * @notice Ratios are compared, never computed: both sides are multiplied out, so no rounding decides. Amounts named `…X` are
 * wei x 1e18 and exact. Twin of domain/margin.ts.
 */
library MarginLib {
    /// @dev Requirements are in millionths.
    int256 internal constant MILLION = 1e6;
    /// @notice A position is eligible for liquidation below MMR and this, in millionths.
    uint256 internal constant LIQUIDATION_BUFFER = 5_000;

    /// @notice Equity, and the notional it is measured against: size x oracle price, or x (1 - price) for a binary short.
    /// @param oracleStepX Oracle price of one step.
    /// @param step Quantity step x 1e18, which is also price 1 on one step.
    function exposure(Position memory position, uint256 oracleStepX, uint256 step, bool binary)
        internal
        pure
        returns (int256 equityX, uint256 notionalX)
    {
        // |margin| < 2^149 and entry < 2^92, scaled by 2^60; size < 2^53 on a step worth less than 2^176.
        unchecked {
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

    /// @notice As above, with what a risk action measures by.
    function exposure(Position memory position, Valuation memory valuation)
        internal
        pure
        returns (int256 equityX, uint256 notionalX)
    {
        return exposure(position, valuation.oracleStepX, valuation.step, valuation.binary);
    }

    /**
     * @notice The rule after an account's fills of a part in which something was opened: flat, or ratio >= IMR at the oracle
     * price. A fully collateralised binary position always is: its equity covers what it can lose, which is its notional.
     * @dev Call after `PositionLib.pack` has bounded the position. A run that only closes needs no check: proceeds are not
     * negative, and the roundings of `PositionLib` keep the ratio of the rest or improve it, so "no growth, no flip, ratio not
     * worse" always holds.
     */
    function requireInitial(Position memory position, PartTerms memory terms, address account) internal pure {
        if (position.size == 0) return;
        (int256 equityX, uint256 notionalX) = exposure(position, terms.oracleStepX, terms.step, terms.binary);
        // Both sides are kept x 1e6, below 2^250: nothing rounds, nothing overflows.
        unchecked {
            int256 required = int256(notionalX * terms.imr);
            if (equityX * MILLION >= required) return;
            revert ISettlementErrors.MarginInsufficient(account, required / MILLION, equityX);
        }
    }

    /// @notice Refuses to liquidate an account whose ratio at the oracle price is not below MMR + `LIQUIDATION_BUFFER`. Call
    /// before its fills. A fully collateralised binary position never is: its equity covers its notional.
    function requireLiquidatable(Position memory position, PartTerms memory terms, address account) internal pure {
        (int256 equityX, uint256 notionalX) = exposure(position, terms.oracleStepX, terms.step, terms.binary);
        // As above.
        unchecked {
            int256 required = int256(notionalX * terms.liquidationRatio);
            if (equityX * MILLION < required) return;
            revert ISettlementErrors.NotLiquidatable(account, equityX, required / MILLION);
        }
    }
}
