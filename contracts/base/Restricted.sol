// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AccessManaged} from "@openzeppelin/contracts/access/manager/AccessManaged.sol";

/**
 * @title A contract whose `restricted` functions ask ExchangeAccess
 * @notice The sender is always `msg.sender`: no forwarder speaks for a role. Whom it asks is settled when it is deployed: another
 * authority would lift every bound and every delay at once.
 */
abstract contract Restricted is AccessManaged {
    error AuthorityFixed(address authority);

    constructor(address access) AccessManaged(access) {
        if (access.code.length == 0) revert AccessManagedInvalidAuthority(access);
    }

    /// @notice Always reverts.
    function setAuthority(address) public view override {
        revert AuthorityFixed(authority());
    }
}
