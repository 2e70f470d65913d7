// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IPriceOracle} from "./IPriceOracle.sol";

/**
 * @title Price oracle with n of m signers per feed
 * @notice A signer signs the EIP-712 struct `PriceReport(bytes32 feedId,uint256 price,uint256 observedAt)` in the domain
 * `SignedPriceOracle`, `1`, this chain, this contract: a report cannot be replayed for another feed, chain or contract.
 * The proof is the 65-byte signatures (r, s, v) in ascending order of signer, exactly as many as the threshold.
 *
 * New signers become valid `notice` seconds after they are set. They are valid for observations from `activeFrom` on, the former
 * signers for earlier observations: a report has exactly one set of signers, whenever it settles.
 * The oracle stores two sets. A further change invalidates reports that were observed before the last change
 * (`ObservedTooEarly`); leave a minute between changes.
 */
interface ISignedPriceOracle is IPriceOracle {
    /// @notice The feed's signers for observations from `activeFrom` on. Replaces a scheduled change.
    /// @param activeFrom Milliseconds.
    event FeedSet(bytes32 indexed feedId, address[] signers, uint256 threshold, uint256 activeFrom);
    /// @notice The scheduled change was dropped; the current signers remain.
    event FeedCancelled(bytes32 indexed feedId);

    error ThresholdInvalid(uint256 signers, uint256 threshold);
    error TooManySigners(uint256 allowed, uint256 given);
    error SignersNotAscending(address previous, address signer);
    error ReportSignatureInvalid(uint256 index);
    error SignerUnknown(bytes32 feedId, address signer);

    /// @notice Schedules new signers of a feed, valid after the notice. Replaces a scheduled change. Restricted.
    /// @param signers Ascending, without zero, at most 32.
    /// @param threshold Number of signatures that a report needs; at least 1.
    function setFeed(bytes32 feedId, address[] calldata signers, uint256 threshold) external;

    /// @notice Drops the scheduled change of a feed. Restricted.
    function cancelFeed(bytes32 feedId) external;

    /// @notice Signers for observations at `observedAt` (milliseconds); empty if the feed is unknown or its signers of that time
    /// are no longer stored.
    function feedAt(bytes32 feedId, uint256 observedAt)
        external
        view
        returns (address[] memory signers, uint256 threshold);

    /// @notice Seconds from `setFeed` until the new signers are valid.
    function notice() external view returns (uint256);

    /// @notice The digest that a signer signs.
    function reportDigest(bytes32 feedId, uint256 price, uint256 observedAt) external view returns (bytes32);
}
