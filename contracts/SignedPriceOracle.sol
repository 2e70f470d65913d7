// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {Restricted} from "./base/Restricted.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ISignedPriceOracle} from "./interfaces/ISignedPriceOracle.sol";
import {DelayBoundsLib} from "./libraries/DelayBoundsLib.sol";
import {NOTICE} from "./types/Durations.sol";

/// @title Price oracle with n of m signers per feed
contract SignedPriceOracle is ISignedPriceOracle, EIP712, Restricted {
    // ------------------------------------------------------------------ types

    /// @dev The fields of a signer set that `verify` reads. One slot.
    struct SignerTerms {
        uint48 activeFrom;
        /// Sequence number of the set within its feed; 0 if there is none.
        uint32 number;
        uint16 threshold;
    }

    /// @dev The signers of observations from `activeFrom` on.
    struct SignerSet {
        SignerTerms terms;
        address[] signers;
    }

    // ------------------------------------------------------------------ constants, immutables

    bytes32 private constant REPORT_TYPEHASH = keccak256("PriceReport(bytes32 feedId,uint256 price,uint256 observedAt)");
    uint256 private constant SIGNATURE = 65;
    uint256 private constant MAX_SIGNERS = 32;
    uint256 private constant MAX_NOTICE = 30 days;

    uint256 private immutable _NOTICE;

    // ------------------------------------------------------------------ storage

    mapping(bytes32 feedId => SignerSet) private _latest;
    /// @dev The set before the latest.
    mapping(bytes32 feedId => SignerSet) private _former;
    mapping(bytes32 feedId => uint32) private _lastNumber;
    mapping(bytes32 feedId => mapping(uint256 number => mapping(address signer => bool))) private _isSigner;

    // ------------------------------------------------------------------ constructor

    /// @param noticeSeconds At least a day, except on test chains. With 0 a change is valid immediately and for every report.
    constructor(address access, uint256 noticeSeconds) EIP712("SignedPriceOracle", "1") Restricted(access) {
        DelayBoundsLib.requireWithin(noticeSeconds, NOTICE / 1000, MAX_NOTICE);
        _NOTICE = noticeSeconds;
    }

    // ------------------------------------------------------------------ management

    /// @inheritdoc ISignedPriceOracle
    function setFeed(bytes32 feedId, address[] calldata signers, uint256 threshold) external restricted {
        if (threshold == 0 || threshold > signers.length) revert ThresholdInvalid(signers.length, threshold);
        if (signers.length > MAX_SIGNERS) revert TooManySigners(MAX_SIGNERS, signers.length);
        uint32 number = ++_lastNumber[feedId];
        address previous;
        for (uint256 i; i < signers.length; ++i) {
            address signer = signers[i];
            if (signer <= previous) revert SignersNotAscending(previous, signer);
            _isSigner[feedId][number][signer] = true;
            previous = signer;
        }

        if (!_isWaiting(feedId)) _former[feedId] = _latest[feedId];
        uint48 activeFrom = _NOTICE == 0 ? 0 : uint48((block.timestamp + _NOTICE) * 1000);
        // The threshold is at most MAX_SIGNERS.
        _latest[feedId] = SignerSet(SignerTerms(activeFrom, number, uint16(threshold)), signers);
        emit FeedSet(feedId, signers, threshold, activeFrom);
    }

    /// @inheritdoc ISignedPriceOracle
    function cancelFeed(bytes32 feedId) external restricted {
        if (!_isWaiting(feedId)) revert NoChangePending(feedId);
        _latest[feedId] = _former[feedId];
        delete _former[feedId];
        emit FeedCancelled(feedId);
    }

    function _isWaiting(bytes32 feedId) private view returns (bool) {
        return block.timestamp * 1000 < _latest[feedId].terms.activeFrom;
    }

    // ------------------------------------------------------------------ reports

    /// @inheritdoc IPriceOracle
    function verify(bytes32 feedId, uint256 price, uint256 observedAt, bytes calldata proof) external view {
        SignerTerms memory terms = _latest[feedId].terms;
        if (observedAt < terms.activeFrom) {
            terms = _former[feedId].terms;
            // The signers before the former ones are no longer stored.
            if (observedAt < terms.activeFrom) revert ObservedTooEarly(feedId, terms.activeFrom, observedAt);
        }
        uint256 threshold = terms.threshold;
        if (threshold == 0) revert FeedUnknown(feedId);
        if (proof.length != threshold * SIGNATURE) revert ProofLengthWrong(threshold * SIGNATURE, proof.length);

        bytes32 digest = reportDigest(feedId, price, observedAt);
        mapping(address signer => bool) storage isSigner = _isSigner[feedId][terms.number];
        address previous;
        for (uint256 i; i < threshold; ++i) {
            (address signer, ECDSA.RecoverError problem) = _recover(digest, proof, i);
            if (problem != ECDSA.RecoverError.NoError) revert ReportSignatureInvalid(i);
            if (signer <= previous) revert SignersNotAscending(previous, signer);
            if (!isSigner[signer]) revert SignerUnknown(feedId, signer);
            previous = signer;
        }
    }

    /// @dev `verify` has checked the length of the proof. Rejects high s values and the zero address.
    function _recover(bytes32 digest, bytes calldata proof, uint256 index)
        private
        pure
        returns (address signer, ECDSA.RecoverError problem)
    {
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly ("memory-safe") {
            let from := add(proof.offset, mul(index, 65))
            r := calldataload(from)
            s := calldataload(add(from, 32))
            v := byte(0, calldataload(add(from, 64)))
        }
        (signer, problem,) = ECDSA.tryRecover(digest, v, r, s);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc ISignedPriceOracle
    function feedAt(bytes32 feedId, uint256 observedAt)
        external
        view
        returns (address[] memory signers, uint256 threshold)
    {
        SignerSet storage set = _latest[feedId];
        if (observedAt < set.terms.activeFrom) {
            set = _former[feedId];
            if (observedAt < set.terms.activeFrom) return (signers, threshold);
        }
        return (set.signers, set.terms.threshold);
    }

    /// @inheritdoc ISignedPriceOracle
    function notice() external view returns (uint256) {
        return _NOTICE;
    }

    /// @inheritdoc ISignedPriceOracle
    function reportDigest(bytes32 feedId, uint256 price, uint256 observedAt) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(REPORT_TYPEHASH, feedId, price, observedAt)));
    }
}
