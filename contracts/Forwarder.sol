// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";

/**
 * @title Executes requests that owners signed; a relayer pays the gas
 * @notice OpenZeppelin's ERC2771Forwarder with one more check: a request is executed only if its whole gas can be forwarded.
 * OpenZeppelin detects a starved call afterwards, by the 1/64 of the gas that a call leaves on Ethereum. Chains 4326 and 6343
 * leave 2/100, so a relayer could starve a call without being detected, and the failed request would have used its nonce.
 *
 * Requests of one owner execute in the order of their nonces; requests of different owners execute in any order. Of two requests
 * with one nonce, the relayer executes either. A request that is not executed by its deadline is void.
 */
contract Forwarder is ERC2771Forwarder {
    // ------------------------------------------------------------------ constants

    /// @dev A call forwards at most 49/50 of the remaining gas on chains 4326 and 6343, and more on other chains.
    uint256 private constant FORWARDED = 49;
    uint256 private constant REMAINING = 50;
    /// @dev Above the cost of the call itself, with a value.
    uint256 private constant CALL_GAS = 10_000;

    // ------------------------------------------------------------------ storage

    /// @dev Gas that must remain directly before the call of the current request.
    uint256 private transient _required;

    error GasTooLow(uint256 remaining, uint256 required);

    // ------------------------------------------------------------------ constructor

    constructor() ERC2771Forwarder("Forwarder") {}

    // ------------------------------------------------------------------ execution

    function _execute(ForwardRequestData calldata request, bool requireValidRequest) internal override returns (bool) {
        // One gas per byte covers the copy of the data to memory.
        _required = (request.gas * REMAINING + FORWARDED - 1) / FORWARDED + CALL_GAS + request.data.length;
        return super._execute(request, requireValidRequest);
    }

    /// @dev Called for a valid request, directly before its call.
    function _useNonce(address owner) internal override returns (uint256 nonce) {
        nonce = super._useNonce(owner);
        if (gasleft() < _required) revert GasTooLow(gasleft(), _required);
    }
}
