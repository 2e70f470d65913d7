// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

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
    /// @dev Bounds the loop of `adminCount`.
    uint256 private constant MAX_ADMINS = 16;

    uint32 private immutable _MINIMUM_DELAY;
    uint48 private immutable _SETUP_END;

    // ------------------------------------------------------------------ storage

    mapping(uint64 roleId => mapping(address account => Offer)) private _offers;

    /// @dev Accounts that have accepted the admin role, also those whose grant delay has not passed.
    address[] private _admins;

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

    /// @dev Records new admins.
    function _grantRole(uint64 roleId, address account, uint32 grantDelay, uint32 executionDelay)
        internal
        override
        returns (bool joined)
    {
        joined = super._grantRole(roleId, account, grantDelay, executionDelay);
        if (!joined || roleId != ADMIN_ROLE) return joined;
        if (_admins.length == MAX_ADMINS) revert TooManyAdmins(MAX_ADMINS);
        _admins.push(account);
    }

    /// @dev Also withdraws an open offer. Reverts for the last active admin: an admin whose grant delay runs could not act.
    function _revokeRole(uint64 roleId, address account) internal override returns (bool left) {
        if (_offers[roleId][account].expiresAt != 0) {
            delete _offers[roleId][account];
            emit RoleOfferWithdrawn(roleId, account);
        }
        left = super._revokeRole(roleId, account);
        if (!left || roleId != ADMIN_ROLE) return left;
        _removeAdmin(account);
        if (adminCount() == 0) revert LastAdmin(account);
    }

    /// @dev The last entry takes the place of the removed one.
    function _removeAdmin(address account) private {
        uint256 last = _admins.length - 1;
        for (uint256 i; i < last; ++i) {
            if (_admins[i] == account) _admins[i] = _admins[last];
        }
        _admins.pop();
    }

    /// @dev A shorter delay takes effect after its difference to the longer one, so an unbounded delay would be permanent.
    function _setGrantDelay(uint64 roleId, uint32 newDelay) internal override {
        DelayBoundsLib.requireWithin(newDelay, 0, MAX_DELAY);
        super._setGrantDelay(roleId, newDelay);
    }

    /// @dev Bounded for the same reason.
    function _setTargetAdminDelay(address target, uint32 newDelay) internal override {
        DelayBoundsLib.requireWithin(newDelay, 0, MAX_DELAY);
        super._setTargetAdminDelay(target, newDelay);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IExchangeAccess
    function adminCount() public view returns (uint256 count) {
        for (uint256 i; i < _admins.length; ++i) {
            (bool isActive,) = hasRole(ADMIN_ROLE, _admins[i]);
            if (isActive) ++count;
        }
    }

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
