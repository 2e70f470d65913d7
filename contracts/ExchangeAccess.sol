// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AccessManager} from "@openzeppelin/contracts/access/manager/AccessManager.sol";
import {IAccessManager} from "@openzeppelin/contracts/access/manager/IAccessManager.sol";
import {IExchangeAccess} from "./interfaces/IExchangeAccess.sol";
import {DelayBoundsLib} from "./libraries/DelayBoundsLib.sol";
import {NOTICE} from "./types/Durations.sol";
import {GUARDIAN, LISTING, PARAMETERS, TREASURY} from "./types/Roles.sol";

/// @title Roles of the exchange, and the delays of their operations
contract ExchangeAccess is AccessManager, IExchangeAccess {
    // ------------------------------------------------------------------ types

    struct Offer {
        uint32 executionDelay;
        uint48 expiresAt;
    }

    // ------------------------------------------------------------------ constants, immutables

    uint32 private constant MAX_DELAY = 30 days;
    uint48 private constant SETUP = 3 days;

    uint32 private immutable _MINIMUM_DELAY;
    uint48 private immutable _SETUP_END;

    // ------------------------------------------------------------------ storage

    mapping(uint64 roleId => mapping(address account => Offer)) private _offers;

    /// @inheritdoc IExchangeAccess
    uint256 public adminCount;

    // ------------------------------------------------------------------ constructor

    /// @param firstAdmin Sets up the exchange without delay, and should renounce the role when other admins have accepted it.
    constructor(address firstAdmin, uint32 roleDelay) AccessManager(firstAdmin) {
        DelayBoundsLib.requireWithin(roleDelay, NOTICE / 1000, MAX_DELAY);
        _MINIMUM_DELAY = roleDelay;
        _SETUP_END = uint48(block.timestamp) + SETUP;
        emit RoleLabel(LISTING, "LISTING");
        emit RoleLabel(PARAMETERS, "PARAMETERS");
        emit RoleLabel(GUARDIAN, "GUARDIAN");
        emit RoleLabel(TREASURY, "TREASURY");
        // The guardian may cancel scheduled operations of these roles.
        _setRoleGuardian(LISTING, GUARDIAN);
        _setRoleGuardian(PARAMETERS, GUARDIAN);
        _setRoleGuardian(TREASURY, GUARDIAN);
    }

    // ------------------------------------------------------------------ roles

    /// @notice Offers a role to `account`. If the account has the role, changes its delay; a shorter delay becomes effective
    /// after the difference.
    /// @inheritdoc IAccessManager
    function grantRole(uint64 roleId, address account, uint32 executionDelay)
        public
        override(AccessManager, IAccessManager)
        onlyAuthorized
    {
        DelayBoundsLib.requireWithin(executionDelay, 0, MAX_DELAY);
        (uint48 since,,,) = getAccess(roleId, account);
        if (since != 0) {
            _grantRole(roleId, account, 0, executionDelay);
            return;
        }
        if (roleId == PUBLIC_ROLE) revert AccessManagerLockedRole(roleId);
        uint48 expiresAt = uint48(block.timestamp) + expiration();
        _offers[roleId][account] = Offer({executionDelay: executionDelay, expiresAt: expiresAt});
        emit RoleOffered(roleId, account, executionDelay, expiresAt);
    }

    /// @inheritdoc IExchangeAccess
    function acceptRole(uint64 roleId) external {
        Offer memory offer = _offers[roleId][msg.sender];
        if (block.timestamp >= offer.expiresAt) revert RoleNotOffered(roleId, msg.sender);
        delete _offers[roleId][msg.sender];
        _grantRole(roleId, msg.sender, getRoleGrantDelay(roleId), offer.executionDelay);
    }

    /// @dev Counts new admins.
    function _grantRole(uint64 roleId, address account, uint32 grantDelay, uint32 executionDelay)
        internal
        override
        returns (bool joined)
    {
        joined = super._grantRole(roleId, account, grantDelay, executionDelay);
        if (joined && roleId == ADMIN_ROLE) ++adminCount;
    }

    /// @dev Also withdraws an open offer. Reverts for the last admin.
    function _revokeRole(uint64 roleId, address account) internal override returns (bool left) {
        if (_offers[roleId][account].expiresAt != 0) {
            delete _offers[roleId][account];
            emit RoleOfferWithdrawn(roleId, account);
        }
        left = super._revokeRole(roleId, account);
        if (!left || roleId != ADMIN_ROLE) return left;
        if (adminCount == 1) revert LastAdmin(account);
        --adminCount;
    }

    // ------------------------------------------------------------------ views

    /// @notice Whether `account` has the role, and its delay: at least the minimum after the set-up period.
    /// @inheritdoc IAccessManager
    function hasRole(uint64 roleId, address account)
        public
        view
        override(AccessManager, IAccessManager)
        returns (bool isMember, uint32 executionDelay)
    {
        (isMember, executionDelay) = super.hasRole(roleId, account);
        bool bounded = isMember && roleId != PUBLIC_ROLE && roleId != GUARDIAN && block.timestamp >= _SETUP_END;
        if (bounded && executionDelay < _MINIMUM_DELAY) executionDelay = _MINIMUM_DELAY;
    }

    /// @inheritdoc IExchangeAccess
    function offeredRole(uint64 roleId, address account)
        external
        view
        returns (uint32 executionDelay, uint48 expiresAt)
    {
        Offer memory offer = _offers[roleId][account];
        return block.timestamp < offer.expiresAt ? (offer.executionDelay, offer.expiresAt) : (0, 0);
    }

    /// @inheritdoc IExchangeAccess
    function minimumDelay() external view returns (uint32) {
        return _MINIMUM_DELAY;
    }

    /// @inheritdoc IExchangeAccess
    function setupEnd() external view returns (uint48) {
        return _SETUP_END;
    }

    // ------------------------------------------------------------------ disabled functions

    /// @notice Always reverts: nested calls would hide operations from observers of scheduled calls.
    function multicall(bytes[] calldata) public pure override returns (bytes[] memory) {
        revert NoMulticall();
    }
}
