// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title Session keys
 * @notice A key that an owner has registered may sign orders, or margin and leverage changes, in his place: never
 * withdrawals, never other keys. Access ends 30 days after the *first* registration; registering again after a revocation
 * gives back what is left of it. Owners call directly or through the forwarder.
 */
interface IAccountManager {
    struct SessionKey {
        /// Bits: 1 sign orders, 2 change margin and leverage. Kept after a revocation.
        uint8 permissions;
        /// Unix seconds of the first registration; 0 if never registered.
        uint64 registeredAt;
        /// Unix seconds; 0 while approved.
        uint64 revokedAt;
    }

    /// @notice `key` may act for `owner`, with `permissions` in place of those it had (1 orders, 2 margin and leverage). Unix
    /// seconds; `registeredAt` is the first registration's and never changes. A revocation before it is void.
    event SessionKeyRegistered(
        address indexed owner, address indexed key, uint8 permissions, uint64 registeredAt, uint64 expiresAt
    );
    /// @notice The key has ended, at `revokedAt` (unix seconds); it stays valid for actions with
    /// `asOf` <= `revokedAt` + CANCEL_GRACE.
    event SessionKeyRevoked(address indexed owner, address indexed key, uint64 revokedAt);

    error KeyInvalid(address owner, address key);
    error PermissionsInvalid(uint8 permissions);
    /// @notice A key cannot lose permissions while batches that rely on them may be under way: revoke it first, and register it
    /// again after CANCEL_GRACE + ACTION_LIFETIME.
    error PermissionsNarrowed(address owner, address key, uint8 current, uint8 asked);
    /// @notice The 30 days of a key are over for good: take another one.
    error KeyExpired(address owner, address key, uint256 expiredAt);
    error KeyNotRegistered(address owner, address key);

    /// @notice Approves `key` for the caller, within the 30 days from its first registration. Approving an approved key may add
    /// permissions, not take them. Approving a revoked key makes good again what it has signed.
    function registerSessionKey(address key, uint8 permissions) external;

    /// @notice Revokes the caller's approval of `key`. It applies to batches with `asOf` > block time + CANCEL_GRACE. A second
    /// revocation changes nothing.
    function revokeSessionKey(address key) external;

    function sessionKey(address owner, address key) external view returns (SessionKey memory);

    /// @notice Whether `key` may act for `owner` in an action as of `asOf` (milliseconds).
    /// @param permission One permission bit.
    function isAuthorized(address owner, address key, uint256 permission, uint256 asOf) external view returns (bool);
}
