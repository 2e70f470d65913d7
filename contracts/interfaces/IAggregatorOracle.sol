// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IPriceOracle} from "./IPriceOracle.sol";

/**
 * @title Prices of Chainlink-style feeds
 * @notice The proof is the number of a round (10 bytes). A report is right if that round was the feed's answer at `observedAt`:
 * complete, positive, already there, younger than the feed's heartbeat, and not followed by another one more than two seconds
 * before. Since the past does not change, a report stays right however late it is settled.
 *
 * Where the chain has an uptime feed, nothing is right that was observed before the last outage ended and the grace after it.
 * No round answers 0: a binary market that may end there takes its final price from signers.
 *
 * A new source is known `notice` seconds before it counts, for what is observed from then on.
 */
interface IAggregatorOracle is IPriceOracle {
    struct Source {
        address aggregator;
        /// Seconds: how old the feed lets its answer become.
        uint32 heartbeat;
        uint8 decimals;
        /// Milliseconds.
        uint48 activeFrom;
    }

    /// @notice The source of what is observed from `activeFrom` (milliseconds) on, in place of a change that still waited.
    event FeedSet(bytes32 indexed feedId, address aggregator, uint32 heartbeat, uint8 decimals, uint48 activeFrom);
    /// @notice The change that waited is dropped; the source before it stays.
    event FeedCancelled(bytes32 indexed feedId);

    error SourceInvalid(address aggregator, uint256 heartbeat, uint256 decimals);
    error RoundIncomplete(bytes32 feedId, uint80 round);
    error AnswerNotPositive(bytes32 feedId, uint80 round, int256 answer);
    error AnswerDiffers(bytes32 feedId, uint80 round, uint256 answer, uint256 given);
    /// @notice The round was the answer from `from` to before `to` (milliseconds).
    error ObservedOutsideRound(uint80 round, uint256 from, uint256 to, uint256 observedAt);
    /// @notice Another round is the latest, and what followed this one is unknown: the feed has changed its phase.
    error RoundSuperseded(uint80 round, uint80 latest);
    error SequencerDown();
    /// @notice Prices count again from `from` (milliseconds).
    error SequencerResuming(uint256 from, uint256 observedAt);

    /// @notice Gives a feed its source after the notice; a change that still waits is dropped for this one. Restricted.
    /// @param heartbeat Seconds, at most two days.
    function setFeed(bytes32 feedId, address aggregator, uint32 heartbeat) external;

    /// @notice Drops a change that still waits. Restricted.
    function cancelFeed(bytes32 feedId) external;

    /// @notice The source of what is observed at `observedAt` (milliseconds); zeros if the feed is unknown.
    function sourceAt(bytes32 feedId, uint256 observedAt) external view returns (Source memory);

    /// @notice Seconds.
    function notice() external view returns (uint256);

    /// @notice The uptime feed, if the chain has one, and how long after an outage (seconds) prices wait.
    function uptime() external view returns (address feed, uint256 grace);
}
