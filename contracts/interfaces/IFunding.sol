// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {FundingRate} from "../types/TraderState.sol";
import {Report} from "../types/Report.sol";

/**
 * @title Funding of a perpetual
 * @notice One index in wei per quantity step grows at a rate (wei per step and hour, positive: longs pay) from one action to the
 * next. A position's margin is stored with the index folded in, so longs pay to the wei what shorts get, without a transfer.
 *
 * The operator sets the rate, within bounds that code keeps: the market's cap of the oracle price; from one end of it to the
 * other in no less than 45 minutes (as dYdX's P1FundingOracle bounds it); within a third of it where no rate was running; for an
 * hour at most, and not beyond the session of a market that has one. A rate that is not renewed ends: a silent operator
 * stops funding, he does not freeze it.
 */
interface IFunding {
    /// @notice `rate` runs from `asOf` until `validUntil`, both milliseconds. `fundingIndex` is the index as of `asOf`; the
    /// report has become the market's last.
    event FundingUpdated(
        uint256 indexed actionId,
        uint256 asOf,
        int256 rate,
        uint256 validUntil,
        int256 fundingIndex,
        uint256 oraclePrice,
        uint256 observedAt
    );

    error NotPerpetual();
    error FundingRateOutOfRange(int256 lowest, int256 highest, int256 given);
    /// @notice `validUntil` is later than `asOf`, by an hour at most, and not past the end of the session.
    error FundingValidityInvalid(uint256 after_, uint256 latest, uint256 given);
    error SessionClosed(uint256 asOf, uint256 sessionEnd);
    /// @notice The index could leave its 96 bits before the rate ends.
    error FundingIndexOutOfRange(int256 index);

    /**
     * @notice Accrues funding and sets the rate that runs from `asOf` on. Operator only; takes the next action number.
     * @param rate Wei per step and hour.
     * @param report Of the market's price: the bounds are fractions of it.
     * @param session Of the market's session feed, not read where it has none: when the running session ends.
     */
    function updateFunding(
        uint256 actionId,
        uint256 asOf,
        int96 rate,
        uint48 validUntil,
        Report calldata report,
        Report calldata session
    ) external;

    function fundingRate() external view returns (FundingRate memory);
}
