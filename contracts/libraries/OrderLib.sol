// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAccountManager} from "../interfaces/IAccountManager.sol";
import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {RecordBody, RecordHead} from "../types/OrderRecord.sol";
import {PartTerms} from "../types/Settlement.sol";

/**
 * @title Order records: decoding, checks, EIP-712 digest and signer
 * @notice A record in calldata contains only the fields that differ from their default (domain/settlement/settlement-codec.ts
 * encodes it). `read` turns it into head and body (types/OrderRecord.sol).
 *
 *    0  maker 20 | 20 fill 6 | 26 leverage 7 bits, flags 57 bits | 34 price 5 | 39 expiration 5
 *   44  slot 10 bits | has taker 1 | all taker 1 | v - 27 1 | forced 1 | has quantity 1 | has trigger 1                (46 bytes)
 *       unless forced:  r 32 | s 32
 *       has quantity:   quantity 6                otherwise the quantity is the fill
 *       has trigger:    condition 1 | trigger 5   otherwise both are 0
 *       has taker:      taker 6                   otherwise the whole fill if "all taker", else 0
 *
 * `flags` is the signed field: salt 53 bits above 4 flag bits, of which two are reserved and zero. The suffix byte of the
 * signature is implied: only personal-message signatures are valid.
 */
library OrderLib {
    /// @dev Bytes of a record before its signature and its optional fields.
    uint256 private constant FIXED = 46;
    uint256 private constant SIGNATURE = 64;

    bytes32 internal constant ORDER_TYPEHASH = keccak256(
        "Order(bytes8 flags,uint128 quantity,uint128 price,uint128 triggerPrice,uint8 triggerCondition,"
        "uint128 leverage,address maker,uint128 expiration)"
    );

    /// @dev Permission bit of session keys.
    uint256 private constant SIGN_ORDERS = 1;

    /// @dev Reserved bits of the signed flags: bits 2 and 3, and all above a 53-bit salt. A record has no bits above the salt.
    uint256 internal constant RESERVED_FLAGS = 0xFE0000000000000C;
    uint256 private constant RESERVED_WORD = 12 << 192;
    /// @dev Trigger and condition: an order that has them takes the slow path of `requireValid`.
    uint256 private constant TRIGGER_WORD = (uint256(type(uint40).max) << 112) | (3 << 4);
    /// @dev RESERVED_WORD | TRIGGER_WORD, as a literal because assembly requires one.
    uint256 private constant ODD_WORD = 0x000000000000000C0000000000FFFFFFFFFF0000000000000000000000000030;
    /// @dev Value and mask of the fixed fields of a forced record: reduce-only, no slot, forced, all others zero. Salt, side and
    /// taker are free.
    uint256 private constant FORCED_WORD = (2 << 192) | (1023 << 6) | 4;
    uint256 private constant FORCED_MASK =
        ~((uint256(type(uint56).max >> 3) << 196) | (1 << 192) | (uint256(type(uint48).max) << 24));

    /// @dev Half the order of secp256k1.
    uint256 private constant MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    // ------------------------------------------------------------------ record

    /// @notice Reads the record at calldata position `pointer`. Bytes beyond the end of the part are read too: the caller
    /// compares the end of the last record, `next`, with the end of the records.
    function read(uint256 pointer) internal pure returns (RecordHead head, RecordBody body, uint256 next) {
        uint256 optional;
        assembly ("memory-safe") {
            // All fields behind the maker, which end with the low bit.
            let fields := calldataload(add(pointer, 14))
            let fill := and(shr(160, fields), 0xffffffffffff)
            head := or(or(shl(96, shr(96, calldataload(pointer))), shl(48, fill)), fill)
            // Flags and price, expiration, leverage; then slot, v and forced, which are the same bits in both words.
            body := and(shl(96, fields), 0x01ffffffffffffffffffffffff00000000000000000000000000000000000000)
            body := or(body, and(shl(56, fields), 0xffffffffff000000000000000000))
            body := or(body, or(and(shr(137, fields), 0x7f0000), and(fields, 0xffcc)))
            body := or(body, shl(24, mul(fill, and(shr(4, fields), 1))))
            next := add(pointer, add(FIXED, mul(SIGNATURE, iszero(and(fields, 4)))))
            optional := and(fields, 0x23)
        }
        if (optional != 0) (head, body, next) = _readOptional(head, body, next, optional);
    }

    /// @notice Whether the record at `pointer` continues the run of `account`: a forced record starts its own.
    function continuesRun(uint256 pointer, address account) internal pure returns (bool continues) {
        assembly ("memory-safe") {
            let forced := and(calldataload(add(pointer, 14)), 4)
            continues := gt(eq(shr(96, calldataload(pointer)), shr(96, shl(96, account))), forced)
        }
    }

    /// @dev The optional fields at `next`. Bits of `optional`: 2 quantity, 1 trigger, 32 taker.
    function _readOptional(RecordHead head, RecordBody body, uint256 next, uint256 optional)
        private
        pure
        returns (RecordHead, RecordBody, uint256)
    {
        assembly ("memory-safe") {
            if and(optional, 2) {
                head := or(and(head, not(shl(48, 0xffffffffffff))), shl(48, shr(208, calldataload(next))))
                next := add(next, 6)
            }
            if and(optional, 1) {
                let trigger := calldataload(next)
                let condition := shr(248, trigger)
                // A condition that does not fit its two bits becomes 3, which is invalid too.
                condition := or(and(condition, 3), mul(3, gt(condition, 3)))
                body := or(body, or(shl(112, and(shr(208, trigger), 0xffffffffff)), shl(4, condition)))
                next := add(next, 6)
            }
            if and(optional, 32) {
                body := or(and(body, not(shl(24, 0xffffffffffff))), shl(24, shr(208, calldataload(next))))
                next := add(next, 6)
            }
        }
        return (head, body, next);
    }

    /// @notice The signature of the record at `pointer`, unless it is forced.
    function readSignature(uint256 pointer) internal pure returns (bytes32 r, bytes32 s) {
        assembly ("memory-safe") {
            r := calldataload(add(pointer, FIXED))
            s := calldataload(add(pointer, add(FIXED, 32)))
        }
    }

    // ------------------------------------------------------------------ checks

    /// @notice Reverts if the record breaks a rule of the order or of the part: see `requireTerms` and `_requireFill`.
    /// @dev The fast path evaluates all rules without a branch and over-approximates violations. If `odd` is not zero, the slow
    /// path checks each rule and may still accept the record.
    function requireValid(RecordHead head, RecordBody body, PartTerms memory terms) internal pure {
        uint256 fill = head.fill();
        uint256 price = body.price();
        uint256 clearing = terms.price;
        uint256 expiration = body.expiration();
        bool buy = body.isBuy();
        uint256 odd;
        // Subtracting 1 from both sides of a comparison turns a 0 that means "none" into the largest number, which passes.
        assembly ("memory-safe") {
            odd := and(body, ODD_WORD)
            odd := or(odd, iszero(fill))
            odd := or(odd, and(buy, lt(sub(price, 1), sub(clearing, 1))))
            odd := or(odd, gt(mul(price, iszero(buy)), clearing))
        }
        uint256 taker = body.taker();
        uint256 leverage = body.leverage();
        uint256 maxLeverage = terms.maxLeverage;
        uint256 asOf = terms.asOf;
        assembly ("memory-safe") {
            odd := or(odd, gt(taker, fill))
            odd := or(odd, iszero(lt(sub(leverage, 1), maxLeverage)))
            odd := or(odd, lt(sub(mul(expiration, 1000), 1), sub(asOf, 1)))
        }
        if (odd == 0) return;
        _requireFill(head, body, terms);
        requireTerms(head, body, terms);
    }

    /// @dev Rules of the fill that the operator chose.
    function _requireFill(RecordHead head, RecordBody body, PartTerms memory terms) private pure {
        (address maker, uint256 salt, uint256 fill) = (head.maker(), body.salt(), head.fill());
        if (RecordBody.unwrap(body) & RESERVED_WORD != 0) revert ISettlementErrors.ReservedBits(maker, salt);
        if (fill == 0) revert ISettlementErrors.ZeroFill(maker, salt);
        if (body.taker() > fill) revert ISettlementErrors.TakerAboveFill(maker, salt, fill, body.taker());
        uint256 limit = body.price();
        if (limit != 0 && (body.isBuy() ? terms.price > limit : terms.price < limit)) {
            revert ISettlementErrors.LimitViolated(maker, salt, limit, terms.price);
        }
    }

    /// @notice Rules of an order that do not depend on the price: leverage, trigger encoding, expiration. Reads `asOf` and
    /// `maxLeverage` of the terms.
    function requireTerms(RecordHead head, RecordBody body, PartTerms memory terms) internal pure {
        (address maker, uint256 salt, uint256 leverage) = (head.maker(), body.salt(), body.leverage());
        if (leverage == 0 || leverage > terms.maxLeverage) {
            revert ISettlementErrors.LeverageOutOfRange(maker, salt, terms.maxLeverage, leverage);
        }
        if (RecordBody.unwrap(body) & TRIGGER_WORD != 0) _requireTrigger(maker, body);
        uint256 expiration = body.expiration();
        if (expiration != 0 && terms.asOf > expiration * 1000) {
            revert ISettlementErrors.OrderExpired(maker, salt, expiration, terms.asOf);
        }
    }

    /// @dev Condition 1: at or above the trigger, 2: at or below. A stop has condition 1 for a buy and 2 for a sell. The other
    /// pairs are take-profits, which must be reduce-only.
    function _requireTrigger(address maker, RecordBody body) private pure {
        (uint256 trigger, uint256 condition) = (body.trigger(), body.triggerCondition());
        bool valid = trigger != 0 && (condition == 1 || condition == 2);
        bool takeProfit = body.isBuy() ? condition == 2 : condition == 1;
        if (!valid || (takeProfit && !body.isReduceOnly())) {
            revert ISettlementErrors.TriggerEncoding(maker, body.salt(), condition, trigger);
        }
    }

    /// @notice Reverts unless the record is a well-formed forced record: a reduce-only market order that names account, fill,
    /// side, number (in the salt field) and taker steps. Every other field is zero.
    function requireForced(RecordHead head, RecordBody body) internal pure {
        uint256 fill = head.fill();
        bool plain = RecordBody.unwrap(body) & FORCED_MASK == FORCED_WORD;
        if (!plain || fill == 0 || head.quantity() != fill || body.taker() > fill) {
            revert ISettlementErrors.ForcedEncoding(head.maker(), body.salt());
        }
    }

    // ------------------------------------------------------------------ signature

    /// @notice The EIP-712 digest: `order_hash` everywhere else.
    function digest(RecordHead head, RecordBody body, PartTerms memory terms) internal pure returns (bytes32 result) {
        bytes32 typeHash = ORDER_TYPEHASH;
        bytes32 domain = terms.domainSeparator;
        uint256 step = terms.step;
        uint256 tick = terms.tick;
        // Fields are < 2^48 and increments < 2^80, so no product overflows. Uses memory above the free memory pointer without
        // allocating it. Shifts and masks are those of types/OrderRecord.sol.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore(p, typeHash)
            mstore(add(p, 0x20), shl(192, shr(192, body))) // flags, left-aligned
            mstore(add(p, 0x40), mul(and(shr(48, head), 0xffffffffffff), step)) // quantity
            mstore(add(p, 0x60), mul(and(shr(152, body), 0xffffffffff), tick)) // price
            mstore(add(p, 0x80), mul(and(shr(112, body), 0xffffffffff), tick)) // trigger
            mstore(add(p, 0xa0), and(shr(4, body), 3)) // triggerCondition
            mstore(add(p, 0xc0), mul(and(shr(16, body), 0xff), 1000000000000000000)) // leverage
            mstore(add(p, 0xe0), shr(96, head)) // maker
            mstore(add(p, 0x100), and(shr(72, body), 0xffffffffff)) // expiration
            let structHash := keccak256(p, 0x120)
            mstore(p, shl(240, 0x1901))
            mstore(add(p, 0x02), domain)
            mstore(add(p, 0x22), structHash)
            result := keccak256(p, 0x42)
        }
    }

    /// @notice The signer of `orderDigest` as a personal message; zero if the signature is invalid or s is high.
    /// @param yParity 0 or 1: v - 27.
    function recover(bytes32 orderDigest, uint256 yParity, bytes32 r, bytes32 s) internal view returns (address signer) {
        // Uses memory above the free memory pointer. The precompile returns no data for an invalid signature.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore(p, "\x19Ethereum Signed Message:\n32")
            mstore(add(p, 28), orderDigest)
            mstore(p, keccak256(p, 60))
            mstore(add(p, 0x20), add(27, yParity))
            mstore(add(p, 0x40), r)
            mstore(add(p, 0x60), s)
            let done := staticcall(gas(), 1, p, 0x80, p, 0x20)
            signer := mul(mload(p), and(and(done, eq(returndatasize(), 0x20)), iszero(gt(s, MAX_S))))
        }
    }

    /// @notice Reverts unless the signer is the maker or a session key that the maker authorized to sign orders.
    function requireSigner(IAccountManager keys, address maker, uint256 salt, address signer, uint256 asOf) internal view {
        // Checked first: with maker zero, an invalid signature (signer zero) would pass the comparison below.
        if (signer == address(0)) revert ISettlementErrors.SignatureInvalid(maker, salt);
        if (signer == maker) return;
        if (!keys.isAuthorized(maker, signer, SIGN_ORDERS, asOf)) {
            revert ISettlementErrors.SignerUnauthorized(maker, salt, signer);
        }
    }
}
