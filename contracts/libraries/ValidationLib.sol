// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {MarketContext} from "../types/MarketContext.sol";
import {Order} from "../types/Order.sol";
import {RecordBody, RecordHead} from "../types/OrderRecord.sol";
import {PartTerms} from "../types/Settlement.sol";
import {TraderState} from "../types/TraderState.sol";
import {ActionLib} from "./ActionLib.sol";
import {OrderLib} from "./OrderLib.sol";
import {SaltLib} from "./SaltLib.sol";

/// @title Hashing and validation of signed orders outside settlement. Linked to the extension; runs on a market's storage
library ValidationLib {
    using SaltLib for TraderState;

    // ------------------------------------------------------------------ validation

    function hashOrder(bytes32 domainSeparator, Order calldata order) public pure returns (bytes32) {
        bytes32 structHash = keccak256(abi.encode(OrderLib.ORDER_TYPEHASH, order));
        return MessageHashUtils.toTypedDataHash(domainSeparator, structHash);
    }

    /// @notice See `IIsolatedTrader.validateOrder`.
    function validateOrder(
        TraderState storage state,
        MarketContext memory context,
        Order calldata order,
        bytes memory signature,
        uint256 asOf
    ) external view returns (bytes32 hash, address signer) {
        (RecordHead head, RecordBody body) = _pack(order, context.tick, context.step);
        if (order.quantity == 0) revert ISettlementErrors.ZeroFill(order.maker, body.salt());
        PartTerms memory terms;
        terms.asOf = asOf;
        terms.maxLeverage = ActionLib.parametersAt(state, state.reference_.changePending, asOf).maxLeverage;
        OrderLib.requireTerms(head, body, terms);
        hash = hashOrder(context.domainSeparator, order);
        signer = _recover(hash, signature);
        OrderLib.requireSigner(context.accountManager, order.maker, body.salt(), signer, asOf);
        state.requireAlive(order.maker, body.salt(), asOf);
    }

    // ------------------------------------------------------------------ internals

    /// @dev 66 bytes: r, s, v and 01. Zero if the signature is invalid.
    function _recover(bytes32 hash, bytes memory signature) private view returns (address signer) {
        if (signature.length != 66) revert IIsolatedTrader.SignatureLengthWrong(66, signature.length);
        uint8 suffix = uint8(signature[65]);
        if (suffix != 1) revert IIsolatedTrader.SignatureSuffixWrong(suffix);
        uint8 v = uint8(signature[64]);
        bytes32 r;
        bytes32 s;
        assembly ("memory-safe") {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
        }
        if (v == 27 || v == 28) signer = OrderLib.recover(hash, v - 27, r, s);
    }

    /// @dev The order as a record with fill 0.
    function _pack(Order calldata order, uint256 tick, uint256 step) private pure returns (RecordHead, RecordBody) {
        uint256 flags = uint64(order.flags);
        if (flags & OrderLib.RESERVED_FLAGS != 0) revert ISettlementErrors.ReservedBits(order.maker, flags >> 4);
        if (order.triggerCondition > 3) {
            revert ISettlementErrors.TriggerEncoding(
                order.maker, flags >> 4, order.triggerCondition, order.triggerPrice
            );
        }
        uint256 body = (flags << 192) | (_onGrid(order.price, tick, type(uint40).max) << 152)
            | (_onGrid(order.triggerPrice, tick, type(uint40).max) << 112)
            | (_onGrid(order.expiration, 1, type(uint40).max) << 72)
            | (_onGrid(order.leverage, 1e18, type(uint8).max) << 16) | (SaltLib.NO_SLOT << 6)
            | (uint256(order.triggerCondition) << 4);
        uint256 head = (uint256(uint160(order.maker)) << 96) | (_onGrid(order.quantity, step, type(uint48).max) << 48);
        return (RecordHead.wrap(head), RecordBody.wrap(body));
    }

    /// @dev `amount` in increments; the field of the record has a maximum of `most`.
    function _onGrid(uint256 amount, uint256 increment, uint256 most) private pure returns (uint256 count) {
        count = amount / increment;
        if (count * increment != amount || count > most) revert IIsolatedTrader.AmountOffGrid(amount, increment);
    }
}
