// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {FundingRate, Reference} from "../types/TraderState.sol";

/// @title Funding: one index in wei per step, so that longs pay exactly what shorts receive. Twin of domain/funding.ts
library FundingLib {
    int256 private constant HOUR = 3_600_000;

    /// @notice Adds what the rate earned between two moments to the index, toward zero. Nothing accrues outside its validity.
    function accrue(FundingRate storage place, Reference memory reference_, uint256 from, uint256 to) internal view {
        FundingRate memory rate = place;
        uint256 start = from > rate.validFrom ? from : rate.validFrom;
        uint256 end = to < rate.validUntil ? to : rate.validUntil;
        // Spares the next actions this slot.
        if (to >= rate.validUntil) reference_.funded = false;
        if (end <= start) return;
        int256 index = reference_.fundingIndex + (int256(rate.rate) * int256(end - start)) / HOUR;
        if (index != int96(index)) revert ISettlementErrors.FundingIndexOutOfRange(index);
        reference_.fundingIndex = int96(index);
    }
}
