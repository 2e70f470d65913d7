// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title The signer of a forwarded request (ERC-2771)
 * @notice Functions that accept forwarded requests call `_forwardedSender`; all other functions use `msg.sender`.
 * `ERC2771Context` is not inherited, because it would apply to every function. The forwarder is immutable, and the contract never
 * calls itself with data of a caller's choice.
 */
abstract contract ForwardedSender {
    // ------------------------------------------------------------------ immutables

    address private immutable _FORWARDER;

    // ------------------------------------------------------------------ constructor

    constructor(address forwarder) {
        _FORWARDER = forwarder;
    }

    // ------------------------------------------------------------------ views

    /// @notice The forwarder calls this before it forwards.
    function isTrustedForwarder(address forwarder) external view returns (bool) {
        return forwarder == _FORWARDER;
    }

    // ------------------------------------------------------------------ internals

    /// @dev The forwarder appends the request's signer to the calldata.
    function _forwardedSender() internal view returns (address) {
        if (msg.sender != _FORWARDER || msg.data.length < 20) return msg.sender;
        return address(bytes20(msg.data[msg.data.length - 20:]));
    }
}
