// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {RecordBody, RecordHead} from "../types/OrderRecord.sol";
import {PartHeader} from "../types/Settlement.sol";

/**
 * @title Encoding of a part, in calldata and in the log
 * @notice Calldata: header (2 words), then `orders` records (OrderLib), then the oracle's proof. From the high bit:
 *
 *   0  actionId 48 | batchId 48 | asOf 48 | part 8 | parts 8 | orders 16 | proofLength 16
 *      makerFee 24 | takerFee 24 | version 16
 *   1  price 40 | oraclePrice 96 | observedAt 48 | zero 72
 *
 * Log: the same two words, the funding index (int128), then one record per order, in order:
 *
 *   maker 160 | leverage 7 | flags 57 | slot 10 | dead 1 | feeCapped 1 | takerMode 2 | forced 1 | zero 1 | fill 48
 *   freeDelta int96                                                                                  (48 bytes)
 *   if takerMode is 2: taker 48       (otherwise taker is 0 for mode 0, the whole fill for mode 1)
 *   if feeCapped:      fee 96         (otherwise the fee follows from price, rates and taker)
 *
 * Twin of domain/settlement/settlement-codec.ts. contracts/README.md has an example in hex.
 */
library SettlementCodec {
    uint256 internal constant VERSION = 3;
    uint256 internal constant HEADER = 64;
    uint256 internal constant MAX_ORDERS = 200;
    uint256 internal constant LOG_HEADER = 80;
    /// @dev Largest log record: with taker quantity and fee.
    uint256 internal constant LOG_RECORD_MAX = 66;

    /// @dev Taker mode: 0 no taker steps, 1 the whole fill, 2 a share that follows the record.
    uint256 private constant TAKER_MIXED = 2;

    // ------------------------------------------------------------------ calldata

    function readHeader(bytes calldata part) internal pure returns (PartHeader memory header) {
        if (part.length < HEADER) revert ISettlementErrors.PartLengthWrong(HEADER, part.length);
        uint256 first;
        uint256 second;
        assembly ("memory-safe") {
            first := calldataload(part.offset)
            second := calldataload(add(part.offset, 32))
        }
        if (first & type(uint16).max != VERSION || second & type(uint72).max != 0) {
            revert ISettlementErrors.HeaderInvalid();
        }
        header.actionId = first >> 208;
        header.batchId = (first >> 160) & type(uint48).max;
        header.asOf = (first >> 112) & type(uint48).max;
        header.part = (first >> 104) & type(uint8).max;
        header.parts = (first >> 96) & type(uint8).max;
        header.orders = (first >> 80) & type(uint16).max;
        header.proofLength = (first >> 64) & type(uint16).max;
        header.makerFee = (first >> 40) & type(uint24).max;
        header.takerFee = (first >> 16) & type(uint24).max;
        header.price = second >> 216;
        header.oraclePrice = (second >> 120) & type(uint96).max;
        header.observedAt = (second >> 72) & type(uint48).max;

        if (header.orders == 0) revert ISettlementErrors.EmptyPart();
        if (header.orders > MAX_ORDERS) revert ISettlementErrors.PartTooLarge(MAX_ORDERS, header.orders);
        uint256 least;
        unchecked { // U2
            least = HEADER + header.proofLength;
        }
        if (part.length < least) revert ISettlementErrors.PartLengthWrong(least, part.length);
    }

    /// @notice Reverts unless the last record, which ends at calldata position `end`, ends where the proof starts.
    function requireEnd(bytes calldata part, uint256 proofLength, uint256 end) internal pure {
        uint256 expected;
        unchecked { // U2
            expected = end + proofLength;
            assembly ("memory-safe") {
                expected := sub(expected, part.offset)
            }
        }
        if (part.length != expected) revert ISettlementErrors.PartLengthWrong(expected, part.length);
    }

    /// @dev `readHeader` has checked that the part is long enough.
    function proofOf(bytes calldata part, PartHeader memory header) internal pure returns (bytes calldata proof) {
        uint256 length = header.proofLength;
        assembly ("memory-safe") {
            proof.offset := sub(add(part.offset, part.length), length)
            proof.length := length
        }
    }

    // ------------------------------------------------------------------ log

    /// @notice Allocates memory for the log of a part and writes its header.
    /// @return log Has no length before `finishLog` sets it.
    /// @return end Address of the first record.
    function startLog(bytes calldata part, uint256 orders, int256 fundingIndex)
        internal
        pure
        returns (bytes memory log, uint256 end)
    {
        uint256 most;
        unchecked { // U2
            most = LOG_HEADER + orders * LOG_RECORD_MAX + 32;
        }
        // Like `new bytes`, but not zeroed: every byte below the length that `finishLog` sets is written.
        assembly ("memory-safe") {
            log := mload(0x40)
            mstore(0x40, and(add(add(log, most), 63), not(31)))
            let start := add(log, 32)
            calldatacopy(start, part.offset, HEADER)
            mstore(add(start, HEADER), shl(128, fundingIndex))
            end := add(start, LOG_HEADER)
        }
    }

    /// @notice Writes one record at `end`. The log's memory extends to at least `end + LOG_RECORD_MAX + 32`.
    function writeRecord(
        uint256 end,
        RecordHead head,
        RecordBody body,
        int256 freeDelta,
        uint256 fee,
        bool capped,
        bool dead
    ) internal pure returns (uint256 next) {
        uint256 mode;
        {
            uint256 fill = head.fill();
            uint256 taker = body.taker();
            // First word: maker in the high bits, the high 16 bits of the fill in the low bits. Second word: the low 32 bits of
            // the fill and 96 bits of the delta.
            assembly ("memory-safe") {
                mode := mul(sub(TAKER_MIXED, eq(taker, fill)), iszero(iszero(taker)))
                let meta := or(or(and(body, 0xffc0), shl(5, dead)), or(shl(4, capped), or(shl(2, mode), shr(1, and(body, 4)))))
                let terms := or(shl(89, and(shr(16, body), 0xff)), shl(32, shr(192, body)))
                mstore(end, or(shl(96, shr(96, head)), or(terms, or(shl(16, meta), shr(32, fill)))))
                mstore(add(end, 32), or(shl(224, fill), shr(32, shl(160, freeDelta))))
                next := add(end, 48)
            }
        }
        if (mode == TAKER_MIXED) next = _write(next, body.taker() << 208, 6);
        if (capped) next = _write(next, fee << 160, 12);
    }

    function _write(uint256 end, uint256 word, uint256 length) private pure returns (uint256) {
        assembly ("memory-safe") {
            mstore(end, word)
        }
        return end + length;
    }

    /// @notice Sets the length of the log to the bytes written.
    function finishLog(bytes memory log, uint256 end) internal pure {
        assembly ("memory-safe") {
            mstore(log, sub(end, add(log, 32)))
        }
    }
}
