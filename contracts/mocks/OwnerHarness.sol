// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AdjustLib} from "../libraries/AdjustLib.sol";
import {BandLib} from "../libraries/BandLib.sol";
import {FundingLib} from "../libraries/FundingLib.sol";
import {AdjustLeverage, AdjustMargin} from "../types/Adjustment.sol";
import {Parameters} from "../types/Market.sol";
import {FundingRate, Reference, TraderState} from "../types/TraderState.sol";

/// @title Exposes the rules of funding, adjustments and reports, for parity tests with domain/
contract OwnerHarness {
    TraderState private _state;

    // ------------------------------------------------------------------ funding

    function accrue(FundingRate memory running, Reference memory reference_, uint256 from, uint256 to)
        external
        pure
        returns (Reference memory)
    {
        FundingLib.accrue(running, reference_, from, to);
        return reference_;
    }

    function indexAt(FundingRate memory running, int256 index, uint256 from, uint256 to)
        external
        pure
        returns (int256)
    {
        return FundingLib.indexAt(running, index, from, to);
    }

    function capAt(uint256 fundingCap, uint256 oraclePrice, uint256 step) external pure returns (int256) {
        return FundingLib.capAt(fundingCap, oraclePrice, step);
    }

    function bounds(FundingRate memory last, int256 cap, uint256 asOf)
        external
        pure
        returns (int256 lowest, int256 highest)
    {
        return FundingLib.bounds(last, cap, asOf);
    }

    function requireRoom(int256 index, int256 rate, uint256 time) external pure {
        FundingLib.requireRoom(index, rate, time);
    }

    // ------------------------------------------------------------------ adjustments

    function hashMargin(bytes32 domainSeparator, AdjustMargin calldata signed) external pure returns (bytes32) {
        return AdjustLib.hashMargin(domainSeparator, signed);
    }

    function hashLeverage(bytes32 domainSeparator, AdjustLeverage calldata signed) external pure returns (bytes32) {
        return AdjustLib.hashLeverage(domainSeparator, signed);
    }

    function marginToMove(AdjustLib.AdjustmentContext memory adjustment, AdjustMargin calldata signed)
        external
        pure
        returns (int256)
    {
        return AdjustLib.marginToMove(adjustment, signed);
    }

    function maxRemovable(AdjustLib.AdjustmentContext memory adjustment) external pure returns (uint256) {
        return AdjustLib.maxRemovable(adjustment);
    }

    function marginForLeverage(AdjustLib.AdjustmentContext memory adjustment, AdjustLeverage calldata signed)
        external
        pure
        returns (int256)
    {
        return AdjustLib.marginForLeverage(adjustment, signed);
    }

    /// @dev Marks a nonce as used, as an adjustment does.
    function useNonce(address account, uint256 nonce) external {
        _state.marginNonces[AdjustLib.nonceKey(account, nonce)].bits |= 1 << (nonce & 255);
    }

    function isNonceUsed(address account, uint256 nonce) external view returns (bool) {
        return AdjustLib.isNonceUsed(_state, account, nonce);
    }

    // ------------------------------------------------------------------ reports

    function checkReport(
        uint256 asOf,
        uint256 price,
        uint256 observedAt,
        Reference memory last,
        Parameters memory parameters,
        uint256 tick,
        bool binary
    ) external pure {
        BandLib.checkReport(asOf, price, observedAt, last, parameters, tick, binary);
    }

    function allowedMove(uint256 before, uint256 elapsed, Parameters memory parameters, bool binary)
        external
        pure
        returns (uint256)
    {
        return BandLib.allowedMove(before, elapsed, parameters, binary);
    }
}
