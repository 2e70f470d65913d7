// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";

/// @title Executes requests that owners signed; a relayer pays the gas. OpenZeppelin's ERC2771Forwarder, named `Forwarder`
contract Forwarder is ERC2771Forwarder {
    constructor() ERC2771Forwarder("Forwarder") {}
}
