// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A token that keeps a share of what it moves, and calls back while it moves it
contract HostileToken is ERC20 {
    uint256 public keptPercent;
    address public target;
    bytes public callback;

    constructor() ERC20("Hostile", "HOST") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function keep(uint256 percent) external {
        keptPercent = percent;
    }

    function callBack(address to, bytes calldata data) external {
        target = to;
        callback = data;
    }

    function _update(address from, address to, uint256 amount) internal override {
        uint256 kept = from == address(0) ? 0 : (amount * keptPercent) / 100;
        super._update(from, to, amount - kept);
        if (kept != 0) super._update(from, address(this), kept);
        if (target == address(0) || from == address(0)) return;
        (bool done, bytes memory reason) = target.call(callback);
        if (done) return;
        // Hands the refusal on as it is.
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }
}
