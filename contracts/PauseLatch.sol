// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {Address} from "@openzeppelin/contracts/utils/Address.sol";

/**
 * @title Holds the bank's wei while no pause is active
 * @notice The bank's own balance is its pause flag. The latch receives its ether from the bank and sends all of it back on
 * `release`, so that starting a pause requires no ether from the caller.
 */
contract PauseLatch {
    /// @dev The contract that deployed the latch.
    address private immutable _BANK;

    error NotBank(address sender);

    constructor() payable {
        _BANK = msg.sender;
    }

    modifier onlyBank() {
        if (msg.sender != _BANK) revert NotBank(msg.sender);
        _;
    }

    receive() external payable onlyBank {}

    /// @notice Sends the whole balance to the bank. Bank only.
    function release() external onlyBank {
        Address.sendValue(payable(_BANK), address(this).balance);
    }

    /// @notice The bank that deployed the latch.
    function bank() external view returns (address) {
        return _BANK;
    }
}
