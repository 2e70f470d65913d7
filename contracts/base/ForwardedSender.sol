// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title The sender behind the forwarder
 * @notice `ERC2771Context` is not inherited: only functions that ask for the forwarded sender see it, everything else keeps
 * `msg.sender`. The forwarder never changes, and nothing here calls itself with data of a caller's choice.
 */
abstract contract ForwardedSender {
    // ------------------------------------------------------------------ immutables

    address private immutable _FORWARDER;

    // ------------------------------------------------------------------ constructor

    constructor(address forwarder) {
        _FORWARDER = forwarder;
    }

    // ------------------------------------------------------------------ views

    /// @notice What the forwarder asks before it forwards.
    function isTrustedForwarder(address forwarder) external view returns (bool) {
        return forwarder == _FORWARDER;
    }

    // ------------------------------------------------------------------ internals

    /// @dev The forwarder appends the address that signed the request.
    function _forwardedSender() internal view returns (address) {
        if (msg.sender != _FORWARDER || msg.data.length < 20) return msg.sender;
        return address(bytes20(msg.data[msg.data.length - 20:]));
    }
}
