// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAdministered} from "../interfaces/IAdministered.sol";

/// @title One admin, handed over in two steps
abstract contract Administered is IAdministered {
    // ------------------------------------------------------------------ storage

    /// @inheritdoc IAdministered
    address public admin;
    /// @inheritdoc IAdministered
    address public candidate;

    // ------------------------------------------------------------------ constructor, modifiers

    constructor(address firstAdmin) {
        if (firstAdmin == address(0)) revert AdminZero();
        admin = firstAdmin;
        emit AdminChanged(address(0), firstAdmin);
    }

    modifier onlyAdmin() {
        if (msg.sender != admin) revert NotAdmin(msg.sender);
        _;
    }

    // ------------------------------------------------------------------ management

    /// @inheritdoc IAdministered
    function proposeAdmin(address newCandidate) external onlyAdmin {
        candidate = newCandidate;
        emit AdminProposed(msg.sender, newCandidate);
    }

    /// @inheritdoc IAdministered
    function acceptAdmin() external {
        if (msg.sender != candidate) revert NotCandidate(msg.sender);
        emit AdminChanged(admin, msg.sender);
        admin = msg.sender;
        candidate = address(0);
    }
}
