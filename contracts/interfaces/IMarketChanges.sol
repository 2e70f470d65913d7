// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketMode, Parameters} from "../types/Market.sol";

/**
 * @title Scheduled changes of a market's parameters and mode, and extensions of its expiry
 * @notice New parameters apply a day after their announcement or later. A restriction applies late enough that batches matched
 * before it can settle. Each change applies with the first action whose `asOf` (milliseconds) >= its time; that action emits
 * `ParametersChanged`.
 */
interface IMarketChanges {
    /// @notice In force from this action on; `actionId` 0: from the deployment.
    event ParametersChanged(uint256 indexed actionId, Parameters parameters);
    /// @notice Applies with the first action whose `asOf` >= `activeFrom` (milliseconds). The mode in `parameters` is ignored.
    event ParametersScheduled(Parameters parameters, uint48 activeFrom);
    /// @notice The scheduled parameters were dropped.
    event ScheduledParametersCancelled();
    /// @notice Applies with the first action whose `asOf` >= `activeFrom`. Replaces a scheduled mode.
    event ModeScheduled(MarketMode mode, uint48 activeFrom);
    /// @notice Applies with the first action whose `asOf` >= `activeFrom`. A scheduled laxer mode is dropped.
    event ModeRestricted(MarketMode mode, uint48 activeFrom);

    /// @notice The market expires at this time (milliseconds) instead of the listed one.
    event ExpiryExtended(uint48 expiresAt);
    /// @notice The dispute window (milliseconds) in force instead of the listed one.
    event DisputeWindowExtended(uint48 disputeWindow);

    error ParametersInvalid();
    /// @notice A perpetual has no expiry, and an expiry can be extended once. 0: there is none.
    error ExpiryFixed(uint256 expiresAt);
    /// @notice A dispute window can be extended once.
    error DisputeWindowFixed(uint256 disputeWindow);
    /// @notice The expiry can be extended a day ahead, the dispute window until it ends. Milliseconds.
    error ExtensionTooLate(uint256 latestCall);
    error ChangeTooEarly(uint256 earliest, uint256 given);
    error ParametersAlreadyScheduled(uint256 activeFrom);
    error NoParametersScheduled();
    /// @notice Scheduled parameters must have the current mode; they do not change the mode.
    error ModeChangesApart(MarketMode current, MarketMode given);
    /// @notice A market in mode settling or settled cannot change its mode; only its last action sets settled.
    error ModeFinal(MarketMode current, MarketMode asked);
    /// @notice A restriction must be cancel-only or halted, and stricter than the current mode.
    error ModeNotStricter(MarketMode current, MarketMode asked);

    /// @notice Schedules `next` for `activeFrom` (milliseconds) >= block time + 1 day. One schedule at a time. Restricted.
    function scheduleParameters(Parameters calldata next, uint48 activeFrom) external;

    /// @notice Drops the scheduled parameters. Restricted.
    function cancelScheduledParameters() external;

    /// @notice Schedules a mode: open, cancel-only, halted or settling. Replaces a scheduled mode. The time of mode settling is
    /// the close of the market, unless its expiry is earlier; the final price is observed at or after the close. Restricted.
    /// @param activeFrom Milliseconds, > block time + CANCEL_GRACE; for settling >= block time + 1 day.
    function scheduleMode(MarketMode mode, uint48 activeFrom) external;

    /// @notice Makes the market cancel-only or halted for actions with `asOf` > block time + CANCEL_GRACE, and drops a scheduled
    /// laxer mode. It never makes the mode laxer. Restricted.
    function restrictMode(MarketMode mode) external;

    /// @notice Replaces the listed expiry by one that is at most 30 days later, at least a day before the listed one, once.
    /// Restricted.
    function extendExpiry(uint48 expiresAt) external;

    /// @notice Replaces the listed dispute window by a longer one of at most 14 days, before it ends, once. Restricted.
    function extendDisputeWindow(uint48 disputeWindow) external;
}
