// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAccessManager} from "@openzeppelin/contracts/access/manager/IAccessManager.sol";

/**
 * @title Who may do what, and how long it must have been announced
 * @notice OpenZeppelin's AccessManager with four bounds that no administrator can lift:
 * - A role is granted in two steps: the grantee takes it up within a week, or the grant lapses. A mistyped address gets nothing.
 * - The last admin can neither leave nor be removed.
 * - Once the set-up (three days from deployment) is over, whoever holds a role other than the guardian's acts with a delay of
 *   at least `minimumDelay`, whatever he was granted with; nobody acts with a delay above 30 days.
 * - There is no multicall.
 *
 * Nor can he lead a contract to another manager: each asks the one that it was deployed with (`Restricted`).
 *
 * The guardian may cancel what other roles have scheduled, except the admin's. What a role may call is set per function; what
 * was given to no role needs the admin.
 */
interface IExchangeAccess is IAccessManager {
    /// @notice `account` may take up the role until `expiresAt` (unix seconds).
    event RoleOffered(uint64 indexed roleId, address indexed account, uint32 executionDelay, uint48 expiresAt);
    /// @notice The offer is void.
    event RoleOfferWithdrawn(uint64 indexed roleId, address indexed account);

    error RoleNotOffered(uint64 roleId, address account);
    error LastAdmin(address admin);
    error NoMulticall();

    /// @notice Takes up a role that was offered to the caller. A grant delay of the role begins now.
    function acceptRole(uint64 roleId) external;

    /// @notice The offer that stands; `expiresAt` is 0 if there is none.
    function offeredRole(uint64 roleId, address account)
        external
        view
        returns (uint32 executionDelay, uint48 expiresAt);

    function adminCount() external view returns (uint256);

    /// @notice Seconds; holds from `setupEnd` on for every role but the guardian's.
    function minimumDelay() external view returns (uint32);

    /// @notice Unix seconds.
    function setupEnd() external view returns (uint48);
}
