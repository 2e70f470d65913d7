// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {FeeLib} from "../../contracts/libraries/FeeLib.sol";
import {PartTerms} from "../../contracts/types/Settlement.sol";

/// @title Properties of `FeeLib` within the bounds of row U7 (contracts/README.md)
/// @custom:library FeeLib
/// @custom:fuzzed test/parity/rules.test.ts
contract FeeProofs {
    /// @dev Maximum of a schedule: 5 % (`ListingLib.requireParameters`).
    uint256 private constant MAX_RATE = 50_000;
    uint256 private constant STEP_END = 1 << 80;
    uint256 private constant NOTIONAL_END = 1 << 141;

    /// @notice A linear fee is the exact product if the listing rules hold, and at most 5 % of the notional.
    function linearFeeIsExact(uint256 stepNotional, uint256 rate) external pure {
        require(stepNotional < NOTIONAL_END && stepNotional % 1e6 == 0 && rate <= MAX_RATE);
        uint256 fee = FeeLib.perStep(false, 0, 0, stepNotional, rate);
        assert(fee * 1e6 == stepNotional * rate);
        assert(fee * 20 <= stepNotional);
    }

    /// @notice A linear fee never falls when the rate or the notional rises.
    function linearFeeIsMonotonic(uint256 low, uint256 high, uint256 rate, uint256 higherRate) external pure {
        require(low <= high && high < NOTIONAL_END && rate <= higherRate && higherRate <= MAX_RATE);
        uint256 fee = FeeLib.perStep(false, 0, 0, low, rate);
        assert(fee <= FeeLib.perStep(false, 0, 0, high, rate));
        assert(fee <= FeeLib.perStep(false, 0, 0, low, higherRate));
    }

    /// @notice A binary fee rounds down: it is at most coefficient x p(1 - p) x quantity.
    function binaryFeeRoundsDown(uint256 price, uint256 step, uint256 rate) external pure {
        require(price < 1e18 && step < STEP_END && rate <= MAX_RATE);
        uint256 fee = FeeLib.perStep(true, price, step, 0, rate);
        uint256 variance = (price * (1e18 - price)) / 1e18;
        assert(fee * 1e18 <= ((variance * rate) / 1e6) * step);
    }

    /// @notice A binary fee is at most what a seller or a buyer without leverage pays for the step.
    function binaryFeeIsCovered(uint256 price, uint256 step, uint256 rate) external pure {
        require(price < 1e18 && step < STEP_END && rate <= MAX_RATE);
        uint256 fee = FeeLib.perStep(true, price, step, 0, rate);
        assert(fee <= (price * step) / 1e18);
        assert(fee <= ((1e18 - price) * step) / 1e18);
    }

    /// @notice Fees of parts of a fill add up to the fee of the fill.
    function feesAdd(PartTerms memory terms, uint256 maker, uint256 taker, uint256 maker2, uint256 taker2) external pure {
        require(terms.makerFeePerStep < NOTIONAL_END && terms.takerFeePerStep < NOTIONAL_END);
        require(maker < 1 << 48 && taker < 1 << 48 && maker2 < 1 << 48 && taker2 < 1 << 48);
        uint256 whole = FeeLib.ofFill(terms, maker + maker2, taker + taker2);
        assert(whole == FeeLib.ofFill(terms, maker, taker) + FeeLib.ofFill(terms, maker2, taker2));
    }
}
