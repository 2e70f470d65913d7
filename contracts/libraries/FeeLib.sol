// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PartTerms} from "../types/Settlement.sol";

/**
 * @title Fees of a fill
 * @notice The listing rules make the fee of one step a whole number of wei. Fees of parts therefore add up to the fee of the
 * whole, and one product per rate is exact. Twin of domain/market/fees.ts.
 */
library FeeLib {
    uint256 internal constant MILLIONTH = 1e12;

    /**
     * @notice Fee of one step under a rate in millionths.
     * Perpetual and future: notional x rate. Binary: p(1-p) x coefficient x quantity, rounded down after each multiplication.
     * @param stepNotional Price of one step in wei.
     */
    function perStep(bool binary, uint256 price, uint256 step, uint256 stepNotional, uint256 rate)
        internal
        pure
        returns (uint256)
    {
        unchecked { // U7
            if (!binary) return (stepNotional * rate) / 1e6;
            uint256 variance = (price * (1e18 - price)) / 1e18;
            uint256 perUnit = (variance * rate * MILLIONTH) / 1e18;
            return (perUnit * step) / 1e18;
        }
    }

    /// @notice Fee of a fill: its maker steps under the maker rate, its taker steps under the taker rate.
    function ofFill(PartTerms memory terms, uint256 maker, uint256 taker) internal pure returns (uint256) {
        unchecked { // U7
            return maker * terms.makerFeePerStep + taker * terms.takerFeePerStep;
        }
    }
}
