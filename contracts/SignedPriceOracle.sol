// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {Restricted} from "./base/Restricted.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ISignedPriceOracle} from "./interfaces/ISignedPriceOracle.sol";

/// @title Prices signed by n of m known signers
contract SignedPriceOracle is ISignedPriceOracle, EIP712, Restricted {
    // ------------------------------------------------------------------ types

    struct Feed {
        /// Grows with every change of signers, which forgets the old ones at once.
        uint64 version;
        uint64 threshold;
        address[] signers;
    }

    // ------------------------------------------------------------------ constants

    bytes32 private constant REPORT_TYPEHASH = keccak256("PriceReport(bytes32 feedId,uint256 price,uint256 observedAt)");
    uint256 private constant SIGNATURE = 65;

    // ------------------------------------------------------------------ storage

    mapping(bytes32 feedId => Feed) private _feeds;
    mapping(bytes32 feedId => mapping(uint256 version => mapping(address signer => bool))) private _isSigner;

    // ------------------------------------------------------------------ constructor

    constructor(address access) EIP712("SignedPriceOracle", "1") Restricted(access) {}

    // ------------------------------------------------------------------ management

    /// @inheritdoc ISignedPriceOracle
    function setFeed(bytes32 feedId, address[] calldata signers, uint256 threshold) external restricted {
        if (threshold == 0 || threshold > signers.length) revert ThresholdInvalid(signers.length, threshold);
        Feed storage entry = _feeds[feedId];
        uint64 version = ++entry.version;
        address previous;
        for (uint256 i; i < signers.length; ++i) {
            address signer = signers[i];
            if (signer <= previous) revert SignersNotAscending(previous, signer);
            _isSigner[feedId][version][signer] = true;
            previous = signer;
        }
        // Not more than the number of signers.
        entry.threshold = uint64(threshold);
        entry.signers = signers;
        emit FeedSet(feedId, signers, threshold);
    }

    // ------------------------------------------------------------------ reports

    /// @inheritdoc IPriceOracle
    function verify(bytes32 feedId, uint256 price, uint256 observedAt, bytes calldata proof) external view {
        Feed storage entry = _feeds[feedId];
        uint256 version = entry.version;
        uint256 threshold = entry.threshold;
        if (threshold == 0) revert FeedUnknown(feedId);
        if (proof.length != threshold * SIGNATURE) revert ProofLengthWrong(threshold * SIGNATURE, proof.length);

        bytes32 digest = reportDigest(feedId, price, observedAt);
        address previous;
        for (uint256 i; i < threshold; ++i) {
            bytes calldata signature = proof[i * SIGNATURE:(i + 1) * SIGNATURE];
            (address signer, ECDSA.RecoverError problem,) = ECDSA.tryRecoverCalldata(digest, signature);
            if (problem != ECDSA.RecoverError.NoError) revert ReportSignatureInvalid(i);
            if (signer <= previous) revert SignersNotAscending(previous, signer);
            if (!_isSigner[feedId][version][signer]) revert SignerUnknown(feedId, signer);
            previous = signer;
        }
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc ISignedPriceOracle
    function feed(bytes32 feedId) external view returns (address[] memory signers, uint256 threshold) {
        Feed storage entry = _feeds[feedId];
        return (entry.signers, entry.threshold);
    }

    /// @inheritdoc ISignedPriceOracle
    function reportDigest(bytes32 feedId, uint256 price, uint256 observedAt) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(REPORT_TYPEHASH, feedId, price, observedAt)));
    }
}
