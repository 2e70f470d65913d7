// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IPriceOracle} from "./IPriceOracle.sol";

/**
 * @title Prices signed by n of m known signers
 * @notice Each signs the EIP-712 struct `PriceReport(bytes32 feedId,uint256 price,uint256 observedAt)` in the domain
 * `SignedPriceOracle`, `1`, this chain, this contract: a report can be replayed neither for another feed nor elsewhere.
 * The proof is the 65-byte signatures (r, s, v) in ascending order of signer, exactly as many as the threshold.
 *
 * New signers are known `notice` seconds before they count. They sign for what is observed from `activeFrom` on, the former
 * ones for what was observed before: whenever it is settled, a report has one set of signers.
 * Two sets are known. A further change, made while reports from before the last one are still fresh, voids those: wait a minute.
 */
interface ISignedPriceOracle is IPriceOracle {
    /// @notice These sign for what is observed from `activeFrom` on, in place of a change that still waited.
    /// @param activeFrom Milliseconds.
    event FeedSet(bytes32 indexed feedId, address[] signers, uint256 threshold, uint256 activeFrom);
    /// @notice The change that waited is dropped; the signers before it stay.
    event FeedCancelled(bytes32 indexed feedId);

    error ThresholdInvalid(uint256 signers, uint256 threshold);
    error TooManySigners(uint256 allowed, uint256 given);
    error SignersNotAscending(address previous, address signer);
    error ReportSignatureInvalid(uint256 index);
    error SignerUnknown(bytes32 feedId, address signer);

    /// @notice Replaces the signers of a feed after the notice; a change that still waits is dropped for this one. Restricted.
    /// @param signers Ascending, without zero, at most 32.
    /// @param threshold How many of them a report needs; at least 1.
    function setFeed(bytes32 feedId, address[] calldata signers, uint256 threshold) external;

    /// @notice Drops a change that still waits. Restricted.
    function cancelFeed(bytes32 feedId) external;

    /// @notice Who signs for what is observed at `observedAt` (milliseconds); nobody if the feed is unknown.
    function feedAt(bytes32 feedId, uint256 observedAt)
        external
        view
        returns (address[] memory signers, uint256 threshold);

    /// @notice Seconds.
    function notice() external view returns (uint256);

    /// @notice The digest that a signer signs.
    function reportDigest(bytes32 feedId, uint256 price, uint256 observedAt) external view returns (bytes32);
}
