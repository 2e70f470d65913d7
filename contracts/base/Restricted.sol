// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AccessManaged} from "@openzeppelin/contracts/access/manager/AccessManaged.sol";

/**
 * @title A contract whose `restricted` functions ask ExchangeAccess
 * @notice The sender is always `msg.sender`: no forwarder speaks for a role.
 */
abstract contract Restricted is AccessManaged {
    constructor(address access) AccessManaged(access) {
        if (access.code.length == 0) revert AccessManagedInvalidAuthority(access);
    }
}
