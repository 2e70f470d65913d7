// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Address} from "@openzeppelin/contracts/utils/Address.sol";

/**
 * @title Keeps the wei of a bank's pause
 * @notice It comes from the bank and goes to the bank, all of it, whenever the bank asks. So a pause needs nobody's ether.
 */
contract PauseLatch {
    /// @dev Its maker.
    address private immutable _BANK;

    error SenderNotBank(address sender);

    constructor() payable {
        _BANK = msg.sender;
    }

    modifier onlyBank() {
        if (msg.sender != _BANK) revert SenderNotBank(msg.sender);
        _;
    }

    receive() external payable onlyBank {}

    /// @notice Sends the bank everything.
    function release() external onlyBank {
        Address.sendValue(payable(_BANK), address(this).balance);
    }

    function bank() external view returns (address) {
        return _BANK;
    }
}
