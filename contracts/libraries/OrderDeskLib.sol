// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Order} from "../types/Order.sol";
import {OrderFill, PartTerms} from "../types/Settlement.sol";
import {TraderState} from "../types/TraderState.sol";
import {OrderLib} from "./OrderLib.sol";
import {PositionLib} from "./PositionLib.sol";
import {SaltLib} from "./SaltLib.sol";

/// @title What a maker asks of his orders outside settlement: whether they are good, and that they end. Linked: runs on a
/// market's storage
library OrderDeskLib {
    using SaltLib for TraderState;

    // ------------------------------------------------------------------ validation

    function hashOrder(bytes32 domainSeparator, Order calldata order) public pure returns (bytes32) {
        bytes32 structHash = keccak256(abi.encode(OrderLib.ORDER_TYPEHASH, order));
        return MessageHashUtils.toTypedDataHash(domainSeparator, structHash);
    }

    function validateOrder(
        TraderState storage state,
        MarketContext memory context,
        Order calldata order,
        bytes calldata signature,
        uint256 asOf
    ) external view returns (bytes32 hash, address signer) {
        OrderFill memory unpacked = OrderLib.fromStruct(order, signature, context.grid.tick, context.grid.step);
        if (unpacked.quantity == 0) revert ISettlementErrors.ZeroFill(order.maker, unpacked.salt);
        PartTerms memory terms;
        terms.asOf = asOf;
        terms.maxLeverage = state.parameters.maxLeverage;
        OrderLib.checkTerms(unpacked, terms);
        hash = hashOrder(context.domainSeparator, order);
        signer = OrderLib.requireSigner(context.accountManager, unpacked, hash, asOf);
        state.requireAlive(unpacked, asOf);
    }

    // ------------------------------------------------------------------ cancels

    function cancelSalts(TraderState storage state, address maker, uint256[] calldata salts) external {
        uint256 requestedAt = block.timestamp * 1000;
        for (uint256 i; i < salts.length; ++i) {
            if (salts[i] >= SaltLib.SALT_END) revert IIsolatedTrader.SaltTooLarge(salts[i]);
            state.requestCancel(maker, salts[i], requestedAt);
        }
        emit IIsolatedTrader.SaltsCancelled(maker, salts, requestedAt);
    }

    function cancelSaltsBelow(TraderState storage state, address maker, uint256 floor) external {
        uint256 requestedAt = block.timestamp * 1000;
        if (floor > SaltLib.SALT_END) revert IIsolatedTrader.SaltTooLarge(floor);
        if (!state.requestFloor(maker, floor, requestedAt)) return;
        state.positions[maker].bits |= PositionLib.CANCEL_FLOOR_BIT;
        emit IIsolatedTrader.SaltsCancelledBelow(maker, floor, requestedAt);
    }
}
