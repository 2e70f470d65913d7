// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @notice The fields of an order's record besides the signature, kept packed on the stack: reading a field costs a shift, while
 * a memory struct would cost a write and a read. `OrderLib.read` builds them from calldata. Prices in ticks, quantities in steps.
 *
 *   head  maker 160 | quantity 48 | fill 48
 *   body  flags 64 | price 40 | trigger 40 | expiration 40 | taker 48 | leverage 8 | slot 10 | condition 2 | v 1 | forced 1 |
 *         zero 2
 */
type RecordHead is uint256;
type RecordBody is uint256;

using {maker, quantity, fill} for RecordHead global;
using {
    flags,
    salt,
    isBuy,
    isReduceOnly,
    isForced,
    price,
    trigger,
    triggerCondition,
    expiration,
    taker,
    leverage,
    slot,
    parity
} for RecordBody global;

// ---------------------------------------------------------------------- head

function maker(RecordHead head) pure returns (address) {
    return address(uint160(RecordHead.unwrap(head) >> 96));
}

function quantity(RecordHead head) pure returns (uint256) {
    return (RecordHead.unwrap(head) >> 48) & type(uint48).max;
}

function fill(RecordHead head) pure returns (uint256) {
    return RecordHead.unwrap(head) & type(uint48).max;
}

// ---------------------------------------------------------------------- body

/// As signed, right-aligned: the salt above 4 flag bits.
function flags(RecordBody body) pure returns (uint256) {
    return RecordBody.unwrap(body) >> 192;
}

function salt(RecordBody body) pure returns (uint256) {
    return RecordBody.unwrap(body) >> 196;
}

function isBuy(RecordBody body) pure returns (bool) {
    return RecordBody.unwrap(body) & (1 << 192) != 0;
}

function isReduceOnly(RecordBody body) pure returns (bool) {
    return RecordBody.unwrap(body) & (2 << 192) != 0;
}

/// A forced record (liquidation) without a signature.
function isForced(RecordBody body) pure returns (bool) {
    return RecordBody.unwrap(body) & 4 != 0;
}

/// 0: a market order.
function price(RecordBody body) pure returns (uint256) {
    return (RecordBody.unwrap(body) >> 152) & type(uint40).max;
}

function trigger(RecordBody body) pure returns (uint256) {
    return (RecordBody.unwrap(body) >> 112) & type(uint40).max;
}

/// 1: at or above the trigger, 2: at or below, 0: no trigger.
function triggerCondition(RecordBody body) pure returns (uint256) {
    return (RecordBody.unwrap(body) >> 4) & 3;
}

/// Unix seconds; 0: never.
function expiration(RecordBody body) pure returns (uint256) {
    return (RecordBody.unwrap(body) >> 72) & type(uint40).max;
}

/// Steps of the fill that pay the taker rate.
function taker(RecordBody body) pure returns (uint256) {
    return (RecordBody.unwrap(body) >> 24) & type(uint48).max;
}

function leverage(RecordBody body) pure returns (uint256) {
    return (RecordBody.unwrap(body) >> 16) & type(uint8).max;
}

/// Index of the maker's partial slot, or `SaltLib.NO_SLOT`.
function slot(RecordBody body) pure returns (uint256) {
    return (RecordBody.unwrap(body) >> 6) & 1023;
}

/// y parity of the signature: v - 27.
function parity(RecordBody body) pure returns (uint256) {
    return (RecordBody.unwrap(body) >> 3) & 1;
}
