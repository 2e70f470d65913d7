// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {ForwardedSender} from "./base/ForwardedSender.sol";
import {IAccountManager} from "./interfaces/IAccountManager.sol";
import {ACTION_LIFETIME, CANCEL_GRACE} from "./types/Durations.sol";

/// @title Registry of session keys
contract AccountManager is IAccountManager, ForwardedSender {
    // ------------------------------------------------------------------ constants

    uint256 private constant LIFETIME = 30 days;
    uint8 private constant ALL_PERMISSIONS = 3;

    // ------------------------------------------------------------------ storage

    mapping(address owner => mapping(address key => SessionKey)) private _keys;

    // ------------------------------------------------------------------ constructor

    constructor(address forwarder) ForwardedSender(forwarder) {}

    // ------------------------------------------------------------------ keys

    /// @inheritdoc IAccountManager
    function registerSessionKey(address key, uint8 permissions) external {
        address owner = _forwardedSender();
        // Check: the key is not zero and not the owner, and the permissions exist.
        if (key == address(0) || key == owner) revert KeyInvalid(owner, key);
        if (permissions == 0 || permissions > ALL_PERMISSIONS) revert PermissionsInvalid(permissions);

        // Check: the key's lifetime is not over.
        SessionKey storage entry = _keys[owner][key];
        uint256 expiresAt = entry.registeredAt + LIFETIME;
        if (entry.registeredAt != 0 && block.timestamp >= expiresAt) revert KeyExpired(owner, key, expiresAt);

        // Check: batches that were matched under the current permissions can still settle.
        uint8 current = entry.permissions;
        bool settled = entry.revokedAt != 0 && block.timestamp > entry.revokedAt + (CANCEL_GRACE + ACTION_LIFETIME) / 1000;
        if (!settled && current & ~permissions != 0) revert PermissionsNarrowed(owner, key, current, permissions);

        // Effect: the lifetime always counts from the first registration.
        if (entry.registeredAt == 0) entry.registeredAt = uint64(block.timestamp);
        entry.permissions = permissions;
        entry.revokedAt = 0;
        emit SessionKeyRegistered(owner, key, permissions, entry.registeredAt, entry.registeredAt + uint64(LIFETIME));
    }

    /// @inheritdoc IAccountManager
    function revokeSessionKey(address key) external {
        address owner = _forwardedSender();
        SessionKey storage entry = _keys[owner][key];
        if (entry.registeredAt == 0) revert KeyNotRegistered(owner, key);
        if (entry.revokedAt != 0) return;
        entry.revokedAt = uint64(block.timestamp);
        emit SessionKeyRevoked(owner, key, uint64(block.timestamp));
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IAccountManager
    function sessionKey(address owner, address key) external view returns (SessionKey memory) {
        return _keys[owner][key];
    }

    /// @inheritdoc IAccountManager
    function isAuthorized(address owner, address key, uint256 permission, uint256 asOf) external view returns (bool) {
        SessionKey storage entry = _keys[owner][key];
        (uint256 permissions, uint256 registeredAt, uint256 revokedAt) =
            (entry.permissions, entry.registeredAt, entry.revokedAt);
        unchecked { // U1
            if (registeredAt == 0 || permissions & permission == 0) return false;
            if (asOf >= (registeredAt + LIFETIME) * 1000) return false;
            // Batches that were matched before the revocation was seen can still settle.
            return revokedAt == 0 || asOf <= revokedAt * 1000 + CANCEL_GRACE;
        }
    }
}
