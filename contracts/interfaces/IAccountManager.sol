// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title Registry of session keys
 * @notice An owner registers a key that may sign orders, or margin and leverage changes, for the owner's account. A key cannot
 * sign withdrawals or register keys. It expires 30 days after its *first* registration; registering it again after a revocation
 * does not extend that. Owners call directly or through the forwarder.
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

    /// @notice `key` may act for `owner` with `permissions` (1 orders, 2 margin and leverage), which replace the previous ones.
    /// Unix seconds; `registeredAt` is the time of the first registration. Undoes an earlier revocation.
    event SessionKeyRegistered(
        address indexed owner, address indexed key, uint8 permissions, uint64 registeredAt, uint64 expiresAt
    );
    /// @notice The key was revoked at `revokedAt` (unix seconds). It remains valid for actions with `asOf` <= `revokedAt` +
    /// CANCEL_GRACE.
    event SessionKeyRevoked(address indexed owner, address indexed key, uint64 revokedAt);

    error KeyInvalid(address owner, address key);
    error PermissionsInvalid(uint8 permissions);
    /// @notice A registered key cannot lose permissions, because matched batches may rely on them. Revoke it, and register it
    /// again after CANCEL_GRACE + ACTION_LIFETIME.
    error PermissionsNarrowed(address owner, address key, uint8 current, uint8 asked);
    /// @notice The 30 days of the key are over. Register another key.
    error KeyExpired(address owner, address key, uint256 expiredAt);
    error KeyNotRegistered(address owner, address key);

    /// @notice Registers `key` for the caller, within 30 days from its first registration. Registering a registered key may add
    /// permissions, but not remove any. Registering a revoked key makes its earlier signatures valid again.
    function registerSessionKey(address key, uint8 permissions) external;

    /// @notice Revokes the caller's `key`. The revocation applies to batches with `asOf` > block time + CANCEL_GRACE. A second
    /// revocation changes nothing.
    function revokeSessionKey(address key) external;

    /// @notice The key's registration for `owner`; all zero if it was never registered.
    function sessionKey(address owner, address key) external view returns (SessionKey memory);

    /// @notice Whether `key` may act for `owner` in an action as of `asOf` (milliseconds).
    /// @param permission One permission bit.
    function isAuthorized(address owner, address key, uint256 permission, uint256 asOf) external view returns (bool);
}
