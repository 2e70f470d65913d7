// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AccessManaged} from "@openzeppelin/contracts/access/manager/AccessManaged.sol";

/**
 * @title A contract whose `restricted` functions are authorized by ExchangeAccess
 * @notice Roles are checked for `msg.sender`, never for a forwarded sender. The authority is immutable: another authority could
 * bypass every bound and delay.
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
