// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAccessManager} from "@openzeppelin/contracts/access/manager/IAccessManager.sol";

/**
 * @title Roles of the exchange, and the delays of their operations
 * @notice OpenZeppelin's AccessManager with four restrictions that no admin can remove:
 * - A role is granted in two steps: the grantee accepts it within a week, or the offer expires. A mistyped address gets no role.
 * - The last active admin can neither renounce the role nor be removed. An admin whose grant delay has not passed is not active.
 *   At most 16 accounts are admins.
 * - After the set-up period (three days from deployment), members of every role except the guardian have a delay of at least
 *   `minimumDelay`, whatever delay they were granted with. No delay of a member, a grant or a target exceeds 30 days.
 * - There is no multicall.
 *
 * No admin can replace the manager of a contract: each contract keeps the one that it was deployed with (`Restricted`).
 *
 * The guardian may cancel operations that other roles have scheduled, except the admin's. Functions are assigned to roles one by
 * one; a function that is assigned to no role requires the admin.
 */
interface IExchangeAccess is IAccessManager {
    /// @notice `account` may accept the role until `expiresAt` (unix seconds).
    event RoleOffered(uint64 indexed roleId, address indexed account, uint32 executionDelay, uint48 expiresAt);
    /// @notice The offer was withdrawn.
    event RoleOfferWithdrawn(uint64 indexed roleId, address indexed account);

    error RoleNotOffered(uint64 roleId, address account);
    /// @notice Without `admin`, no admin would be active.
    error LastAdmin(address admin);
    error TooManyAdmins(uint256 most);
    error NoMulticall();

    /// @notice Accepts a role that was offered to the caller. A grant delay of the role starts now.
    function acceptRole(uint64 roleId) external;

    /// @notice The current offer; `expiresAt` is 0 if there is none.
    function offeredRole(uint64 roleId, address account)
        external
        view
        returns (uint32 executionDelay, uint48 expiresAt);

    /// @notice Admins that can act now: those whose grant delay has passed.
    function adminCount() external view returns (uint256);

    /// @notice Seconds; applies from `setupEnd` on to every role except the guardian.
    function minimumDelay() external view returns (uint32);

    /// @notice End of the set-up period in unix seconds.
    function setupEnd() external view returns (uint48);
}
