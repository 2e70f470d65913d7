// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketMode, Parameters} from "../types/Market.sol";

/**
 * @title How a market's parameters and mode change
 * @notice Nobody is surprised: parameters wait for a day at least, a restriction binds late enough for what was matched before
 * it. Each change takes over with the first action whose `asOf` (milliseconds) reaches its time, and says with which.
 */
interface IMarketChanges {
    /// @notice In force from this action on; `actionId` 0: from the beginning.
    event ParametersChanged(uint256 indexed actionId, Parameters parameters);
    /// @notice They wait until the first action as of `activeFrom` (milliseconds). Their mode says nothing.
    event ParametersScheduled(Parameters parameters, uint48 activeFrom);
    /// @notice None wait any more.
    event ScheduledParametersCancelled();
    /// @notice Waits likewise, in place of a mode that was scheduled before.
    event ModeScheduled(MarketMode mode, uint48 activeFrom);
    /// @notice Waits likewise, beside it; a laxer mode that was scheduled is dropped.
    event ModeRestricted(MarketMode mode, uint48 activeFrom);

    error ParametersInvalid();
    error ChangeTooEarly(uint256 earliest, uint256 given);
    error ParametersAlreadyScheduled(uint256 activeFrom);
    error NoParametersScheduled();
    /// @notice Parameters are scheduled in the mode that stands, and leave it as it is when they take over.
    error ModeChangesApart(MarketMode current, MarketMode given);
    /// @notice A market that settles or is settled does not come back; it is settled by its last action only.
    error ModeFinal(MarketMode current, MarketMode asked);
    /// @notice A restriction is cancel-only or halted, and stricter than the mode that stands.
    error ModeNotStricter(MarketMode current, MarketMode asked);

    /// @notice Schedules `next` for `activeFrom` (milliseconds), a day from now or later. One schedule at a time.
    function scheduleParameters(Parameters calldata next, uint48 activeFrom) external;

    function cancelScheduledParameters() external;

    /// @notice Schedules a mode: reopening, restricting or settling the market. Replaces the mode scheduled before.
    /// A perpetual that settles has no final price: it ends by a freeze.
    /// @param activeFrom Milliseconds, later than now + CANCEL_GRACE; for settling a day from now or later.
    function scheduleMode(MarketMode mode, uint48 activeFrom) external;

    /// @notice Makes the market cancel-only or halted for actions with `asOf` > block time + CANCEL_GRACE, and drops a scheduled
    /// laxer mode. It never makes the mode laxer.
    function restrictMode(MarketMode mode) external;
}
