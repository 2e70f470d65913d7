// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {OrderLib} from "./libraries/OrderLib.sol";
import {SettlementCodec} from "./libraries/SettlementCodec.sol";
import {RecordBody, RecordHead} from "./types/OrderRecord.sol";
import {OrderFill, PartHeader} from "./types/Settlement.sol";

/// @title Decodes a packed part into structs, for auditors and tools. Uses the decoder of `settleBatch`
contract SettlementLens {
    // ------------------------------------------------------------------ views

    /// @notice Decodes the argument of `settleBatch`. Reverts if settlement would reject its header or its
    /// length.
    function decodePart(bytes calldata part)
        external
        pure
        returns (PartHeader memory header, OrderFill[] memory orders, bytes memory proof)
    {
        header = SettlementCodec.readHeader(part);
        orders = new OrderFill[](header.orders);
        uint256 next;
        assembly ("memory-safe") {
            next := add(part.offset, 64)
        }
        for (uint256 i; i < header.orders; ++i) {
            next = _read(next, orders[i]);
        }
        SettlementCodec.requireEnd(part, header.proofLength, next);
        proof = SettlementCodec.proofOf(part, header);
    }

    // ------------------------------------------------------------------ internals

    function _read(uint256 pointer, OrderFill memory order) private pure returns (uint256 next) {
        RecordHead head;
        RecordBody body;
        (head, body, next) = OrderLib.read(pointer);
        order.maker = head.maker();
        order.flags = body.flags();
        order.salt = body.salt();
        order.buy = body.isBuy();
        order.reduceOnly = body.isReduceOnly();
        order.quantity = head.quantity();
        order.price = body.price();
        order.trigger = body.trigger();
        order.triggerCondition = body.triggerCondition();
        order.leverage = body.leverage();
        order.expiration = body.expiration();
        order.fill = head.fill();
        order.taker = body.taker();
        order.slot = body.slot();
        order.forced = body.isForced();
        if (!order.forced) (order.r, order.s) = OrderLib.readSignature(pointer);
        order.v = 27 + body.parity();
    }
}
