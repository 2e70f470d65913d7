// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {FundingRate} from "../types/TraderState.sol";
import {Report} from "../types/Report.sol";

/**
 * @title Funding of a perpetual
 * @notice One index in wei per quantity step accrues a rate (wei per step and hour, positive: longs pay) from one action to the
 * next. A position's margin is stored with the index folded in, so longs pay to the wei what shorts receive, without a transfer.
 *
 * The operator sets the rate. The contract enforces these bounds: the market's cap, a fraction of the oracle price; at least 45
 * minutes from one end of the cap to the other (as in dYdX's P1FundingOracle); within a third of the cap if no rate was
 * running; a validity of at most an hour that ends with the session, if the market has one; no update during a pause of the
 * bank. A rate that is not renewed ends: without updates funding stops.
 */
interface IFunding {
    /// @notice `rate` runs from `asOf` until `validUntil`, both milliseconds. `fundingIndex` is the index as of `asOf`. The
    /// report becomes the market's last report.
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
    /// @notice `validUntil` must be after `asOf`, at most an hour after it, and not after the end of the session.
    error FundingValidityInvalid(uint256 after_, uint256 latest, uint256 given);
    error SessionClosed(uint256 asOf, uint256 sessionEnd);
    /// @notice The index could exceed its 96 bits before the rate ends.
    error FundingIndexOutOfRange(int256 index);

    /**
     * @notice Accrues funding and sets the rate that runs from `asOf` on. Operator only; uses the next action number. Reverts
     * during a pause of the bank.
     * @param rate Wei per step and hour.
     * @param report Of the market's price: the bounds are fractions of it.
     * @param session Report of the market's session feed: the end of the running session. Not read if the market has no session.
     */
    function updateFunding(
        uint256 actionId,
        uint256 asOf,
        int96 rate,
        uint48 validUntil,
        Report calldata report,
        Report calldata session
    ) external;

    /// @notice The last rate that was set, with its validity; all zero before the first.
    function fundingRate() external view returns (FundingRate memory);
}
