// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAccountManager} from "../interfaces/IAccountManager.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {IIsolatedTrader} from "../interfaces/IIsolatedTrader.sol";
import {Order} from "../types/Order.sol";
import {OrderFill, PartTerms} from "../types/Settlement.sol";

/**
 * @title Orders: their record, their digest, their signer
 * @notice A record is four words of calldata, from the high bit of each:
 *
 *   0  maker 160 | quantity 48 | fill 48                                                              (steps)
 *   1  flags 64 | price 40 | trigger 40 | expiration 40 | taker 48 | leverage 8 | slot 10 | condition 2 | v 1 | zero 3
 *   2  r        3  s
 *
 * `flags` is the signed field: salt 53 bits above 4 flag bits. The bits above the salt and the two reserved flag bits are
 * zero. The suffix byte of the signature is implied: only personal messages are taken.
 */
library OrderLib {
    uint256 internal constant RECORD = 128;

    bytes32 internal constant ORDER_TYPEHASH = keccak256(
        "Order(bytes8 flags,uint128 quantity,uint128 price,uint128 triggerPrice,uint8 triggerCondition,"
        "uint128 leverage,address maker,uint128 expiration)"
    );

    uint256 internal constant BUY = 1;
    uint256 internal constant REDUCE_ONLY = 2;
    /// @dev Reserved bits of the signed flags: bits 2 and 3, and all above a 53-bit salt.
    uint256 internal constant RESERVED_FLAGS = 0xFE0000000000000C;
    uint256 private constant RESERVED_WORD = (RESERVED_FLAGS << 192) | 7;

    /// @dev Permission bit of session keys.
    uint256 private constant SIGN_ORDERS = 1;

    /// @dev Half the order of secp256k1.
    uint256 private constant MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    // ------------------------------------------------------------------ record

    /// @notice Reads the record at calldata position `pointer` into `order`, which is reused from record to record.
    function read(uint256 pointer, OrderFill memory order) internal pure {
        uint256 first;
        uint256 second;
        bytes32 r;
        bytes32 s;
        // The caller has checked that the part is as long as its header says.
        assembly ("memory-safe") {
            first := calldataload(pointer)
            second := calldataload(add(pointer, 32))
            r := calldataload(add(pointer, 64))
            s := calldataload(add(pointer, 96))
        }
        order.maker = address(uint160(first >> 96));
        order.quantity = (first >> 48) & type(uint48).max;
        order.fill = first & type(uint48).max;
        order.flags = second >> 192;
        order.salt = second >> 196;
        order.buy = second & (BUY << 192) != 0;
        order.reduceOnly = second & (REDUCE_ONLY << 192) != 0;
        order.price = (second >> 152) & type(uint40).max;
        order.trigger = (second >> 112) & type(uint40).max;
        order.expiration = (second >> 72) & type(uint40).max;
        order.taker = (second >> 24) & type(uint48).max;
        order.leverage = (second >> 16) & type(uint8).max;
        order.slot = (second >> 6) & 1023;
        order.triggerCondition = (second >> 4) & 3;
        order.v = 27 + ((second >> 3) & 1);
        order.r = r;
        order.s = s;
        if (second & RESERVED_WORD != 0) revert ISettlementErrors.ReservedBits(order.maker, order.salt);
    }

    /// @notice The same order from its signed struct: on the grid, with a signature of 66 bytes that ends in 01.
    function fromStruct(Order calldata signed, bytes calldata signature, uint256 tick, uint256 step)
        internal
        pure
        returns (OrderFill memory order)
    {
        uint256 flags = uint64(signed.flags);
        order.maker = signed.maker;
        order.flags = flags;
        order.salt = flags >> 4;
        if (flags & RESERVED_FLAGS != 0) revert ISettlementErrors.ReservedBits(order.maker, order.salt);
        order.buy = flags & BUY != 0;
        order.reduceOnly = flags & REDUCE_ONLY != 0;
        order.quantity = _onGrid(signed.quantity, step, type(uint48).max);
        order.price = _onGrid(signed.price, tick, type(uint40).max);
        order.trigger = _onGrid(signed.triggerPrice, tick, type(uint40).max);
        order.triggerCondition = signed.triggerCondition;
        order.leverage = _onGrid(signed.leverage, 1e18, type(uint8).max);
        order.expiration = _onGrid(signed.expiration, 1, type(uint40).max);

        if (signature.length != 66) revert IIsolatedTrader.SignatureLengthWrong(66, signature.length);
        if (uint8(signature[65]) != 1) revert IIsolatedTrader.SignatureSuffixWrong(uint8(signature[65]));
        order.r = bytes32(signature[0:32]);
        order.s = bytes32(signature[32:64]);
        order.v = uint8(signature[64]);
        if (order.v != 27 && order.v != 28) revert ISettlementErrors.SignatureInvalid(order.maker, order.salt);
    }

    /// @dev The record of settlement has no room for more than `most` increments.
    function _onGrid(uint256 amount, uint256 increment, uint256 most) private pure returns (uint256 count) {
        count = amount / increment;
        if (count * increment != amount || count > most) revert IIsolatedTrader.AmountOffGrid(amount, increment);
    }

    // ------------------------------------------------------------------ checks

    /// @notice What the operator may do with the order in this part.
    function checkFill(OrderFill memory order, PartTerms memory terms) internal pure {
        if (order.fill == 0) revert ISettlementErrors.ZeroFill(order.maker, order.salt);
        if (order.taker > order.fill) {
            revert ISettlementErrors.TakerAboveFill(order.maker, order.salt, order.fill, order.taker);
        }
        if (order.price != 0 && (order.buy ? terms.price > order.price : terms.price < order.price)) {
            revert ISettlementErrors.LimitViolated(order.maker, order.salt, order.price, terms.price);
        }
    }

    /// @notice What makes an order acceptable whatever the price: leverage, trigger encoding, life.
    function checkTerms(OrderFill memory order, PartTerms memory terms) internal pure {
        if (order.leverage == 0 || order.leverage > terms.maxLeverage) {
            revert ISettlementErrors.LeverageOutOfRange(order.maker, order.salt, terms.maxLeverage, order.leverage);
        }
        if (order.trigger != 0 || order.triggerCondition != 0) _checkTrigger(order);
        // The expiration is below 2^40.
        unchecked {
            if (order.expiration != 0 && terms.asOf > order.expiration * 1000) {
                revert ISettlementErrors.OrderExpired(order.maker, order.salt, order.expiration, terms.asOf);
            }
        }
    }

    /// @dev Condition 1: at or above the trigger, 2: at or below. Stops of a buy are 1 and of a sell 2; the other pairs are
    /// take-profits, which are always reduce-only.
    function _checkTrigger(OrderFill memory order) private pure {
        uint256 condition = order.triggerCondition;
        bool valid = order.trigger != 0 && (condition == 1 || condition == 2);
        bool takeProfit = order.buy ? condition == 2 : condition == 1;
        if (!valid || (takeProfit && !order.reduceOnly)) {
            revert ISettlementErrors.TriggerEncoding(order.maker, order.salt, condition, order.trigger);
        }
    }

    // ------------------------------------------------------------------ signature

    /// @notice The EIP-712 digest: `order_hash` everywhere else.
    function digest(OrderFill memory order, PartTerms memory terms) internal pure returns (bytes32 result) {
        bytes32 typeHash = ORDER_TYPEHASH;
        bytes32 domain = terms.domainSeparator;
        uint256 step = terms.step;
        uint256 tick = terms.tick;
        // Fields are below 2^48, increments below 2^80: no product overflows. Works above the free memory pointer and leaves
        // nothing behind. Offsets into `order` are those of `OrderFill`.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore(p, typeHash)
            mstore(add(p, 0x20), shl(192, mload(add(order, 0x20)))) // flags, left-aligned
            mstore(add(p, 0x40), mul(mload(add(order, 0xa0)), step)) // quantity
            mstore(add(p, 0x60), mul(mload(add(order, 0xc0)), tick)) // price
            mstore(add(p, 0x80), mul(mload(add(order, 0xe0)), tick)) // trigger
            mstore(add(p, 0xa0), mload(add(order, 0x100))) // triggerCondition
            mstore(add(p, 0xc0), mul(mload(add(order, 0x120)), 1000000000000000000)) // leverage
            mstore(add(p, 0xe0), mload(order)) // maker
            mstore(add(p, 0x100), mload(add(order, 0x140))) // expiration
            let structHash := keccak256(p, 0x120)
            mstore(p, shl(240, 0x1901))
            mstore(add(p, 0x02), domain)
            mstore(add(p, 0x22), structHash)
            result := keccak256(p, 0x42)
        }
    }

    /// @notice Who signed `orderDigest` as a personal message. High s values and the zero address are refused.
    function recover(OrderFill memory order, bytes32 orderDigest) internal view returns (address signer) {
        if (uint256(order.s) > MAX_S) revert ISettlementErrors.SignatureInvalid(order.maker, order.salt);
        // Works above the free memory pointer. The precompile returns nothing where there is no signer. Offsets into `order`
        // are those of `OrderFill`: v is 27 or 28 by construction.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore(p, "\x19Ethereum Signed Message:\n32")
            mstore(add(p, 28), orderDigest)
            mstore(p, keccak256(p, 60))
            mstore(add(p, 0x20), mload(add(order, 0x200))) // v
            mstore(add(p, 0x40), mload(add(order, 0x1c0))) // r
            mstore(add(p, 0x60), mload(add(order, 0x1e0))) // s
            let done := staticcall(gas(), 1, p, 0x80, p, 0x20)
            signer := mul(mload(p), and(done, eq(returndatasize(), 0x20)))
        }
        if (signer == address(0)) revert ISettlementErrors.SignatureInvalid(order.maker, order.salt);
    }

    /// @notice The maker, or his session key: any other signer is refused.
    function requireSigner(IAccountManager keys, OrderFill memory order, bytes32 orderDigest, uint256 asOf)
        internal
        view
        returns (address signer)
    {
        signer = recover(order, orderDigest);
        if (signer == order.maker) return signer;
        if (!keys.isAuthorized(order.maker, signer, SIGN_ORDERS, asOf)) {
            revert ISettlementErrors.SignerUnauthorized(order.maker, order.salt, signer);
        }
    }
}
