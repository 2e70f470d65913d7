// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PartTerms} from "../types/Settlement.sol";

/**
 * @title Fees
 * @notice The listing rules make a fee whole wei per step, so fees of parts add up to the fee of the whole and one product
 * per rate is exact. Twin of domain/fees.ts.
 */
library FeeLib {
    uint256 internal constant MILLIONTH = 1e12;

    /**
     * @notice Fee of one step under a rate in millionths.
     * Perpetual and future: notional x rate. Binary: p(1-p), x coefficient, x quantity, down after each step.
     * @param stepNotional Price of one step in wei.
     */
    function perStep(bool binary, uint256 price, uint256 step, uint256 stepNotional, uint256 rate)
        internal
        pure
        returns (uint256)
    {
        // A step is worth less than 2^141 and a rate is below 2^24; a binary price is below 1, the step below 2^80.
        unchecked {
            if (!binary) return (stepNotional * rate) / 1e6;
            uint256 variance = (price * (1e18 - price)) / 1e18;
            uint256 perUnit = (variance * rate * MILLIONTH) / 1e18;
            return (perUnit * step) / 1e18;
        }
    }

    /// @notice Fee of a fill: its maker steps under the maker rate, its taker steps under the taker rate.
    function ofFill(PartTerms memory terms, uint256 maker, uint256 taker) internal pure returns (uint256) {
        // A rate is at most 5 %: fees are below the notional, whose bound PositionLib states.
        unchecked {
            return maker * terms.makerFeePerStep + taker * terms.takerFeePerStep;
        }
    }
}
