// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {DelayBoundsLib} from "./libraries/DelayBoundsLib.sol";

/// @title Collateral token of test networks and local chains: any account can mint
contract TestUSDM is ERC20, ERC20Permit {
    error NotATestChain(uint256 chainId);

    constructor() ERC20("MegaUSD (test)", "USDM") ERC20Permit("MegaUSD (test)") {
        if (!DelayBoundsLib.isTestChain()) revert NotATestChain(block.chainid);
    }

    /// @notice Mints `amount` to `to`. Any caller, on test chains only.
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}
