// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {TestUSDM} from "../TestUSDM.sol";

/// @title A token that charges a fee of a tenth of every transfer
contract FeeToken is TestUSDM {
    function _update(address from, address to, uint256 amount) internal override {
        uint256 fee = from == address(0) ? 0 : amount / 10;
        super._update(from, to, amount - fee);
        if (fee != 0) super._update(from, address(this), fee);
    }
}
