// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IPriceOracle} from "./IPriceOracle.sol";

/**
 * @title Prices signed by n of m known signers
 * @notice Each signs the EIP-712 struct `PriceReport(bytes32 feedId,uint256 price,uint256 observedAt)` in the domain
 * `SignedPriceOracle`, `1`, this chain, this contract: a report can be replayed neither for another feed nor elsewhere.
 * The proof is the 65-byte signatures (r, s, v) in ascending order of signer.
 */
interface ISignedPriceOracle is IPriceOracle {
    event FeedSet(bytes32 indexed feedId, address[] signers, uint256 threshold);

    error ThresholdInvalid(uint256 signers, uint256 threshold);
    error SignersNotAscending(address previous, address signer);
    error FeedUnknown(bytes32 feedId);
    error ProofLengthWrong(uint256 expected, uint256 given);
    error ReportSignatureInvalid(uint256 index);
    error SignerUnknown(bytes32 feedId, address signer);

    /// @notice Replaces the signers of a feed. Restricted.
    /// @param signers Ascending, without zero.
    /// @param threshold How many of them a report needs; at least 1.
    function setFeed(bytes32 feedId, address[] calldata signers, uint256 threshold) external;

    function feed(bytes32 feedId) external view returns (address[] memory signers, uint256 threshold);

    /// @notice The digest that a signer signs.
    function reportDigest(bytes32 feedId, uint256 price, uint256 observedAt) external view returns (bytes32);
}
