// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IPriceOracle} from "./IPriceOracle.sol";

/**
 * @title Price oracle over Chainlink-style feeds
 * @notice The proof is a round number (10 bytes). A report is valid if that round was the feed's answer at `observedAt`: the
 * round is complete and positive, was updated by then, is younger than the feed's heartbeat, and the next round came later. Each
 * moment therefore has one round, and its price. A report of a round's first moment stays valid, whenever it settles, unless the
 * feed updates again within that second, or starts a new phase (replaces its aggregator): then only rounds of the new phase are
 * valid, because a replaced aggregator may go on answering. A report of a later moment becomes invalid if the next round turns
 * out to have come before it.
 *
 * If the chain has an uptime feed, reports observed before the end of the last outage plus a grace period are invalid.
 * A round never answers 0: a binary market that may end at 0 needs a signed final price.
 *
 * A new source becomes valid `notice` seconds after it is set, for observations from then on.
 */
interface IAggregatorOracle is IPriceOracle {
    struct Source {
        address aggregator;
        /// Seconds: maximum age of an answer.
        uint32 heartbeat;
        uint8 decimals;
        /// Milliseconds.
        uint48 activeFrom;
    }

    /// @notice The feed's source for observations from `activeFrom` (milliseconds) on. Replaces a scheduled change.
    event FeedSet(bytes32 indexed feedId, address aggregator, uint32 heartbeat, uint8 decimals, uint48 activeFrom);
    /// @notice The scheduled change was dropped; the current source remains.
    event FeedCancelled(bytes32 indexed feedId);

    error SourceInvalid(address aggregator, uint256 heartbeat, uint256 decimals);
    error RoundIncomplete(bytes32 feedId, uint80 round);
    error AnswerNotPositive(bytes32 feedId, uint80 round, int256 answer);
    error AnswerDiffers(bytes32 feedId, uint80 round, uint256 answer, uint256 given);
    /// @notice The round was the feed's answer from `from` (inclusive) to `to` (exclusive), in milliseconds.
    error ObservedOutsideRound(uint80 round, uint256 from, uint256 to, uint256 observedAt);
    /// @notice The round belongs to another phase of the feed than the latest round, or has no next round with an answer.
    error RoundSuperseded(uint80 round, uint80 latest);
    error SequencerDown();
    /// @notice Reports are valid again from `from` (milliseconds).
    error SequencerResuming(uint256 from, uint256 observedAt);

    /// @notice Schedules a new source of a feed, valid after the notice. Replaces a scheduled change. Restricted.
    /// @param heartbeat Seconds, at most two days.
    function setFeed(bytes32 feedId, address aggregator, uint32 heartbeat) external;

    /// @notice Drops the scheduled change of a feed. Restricted.
    function cancelFeed(bytes32 feedId) external;

    /// @notice Source for observations at `observedAt` (milliseconds); zeros if the feed is unknown or its source of that time is
    /// no longer stored.
    function sourceAt(bytes32 feedId, uint256 observedAt) external view returns (Source memory);

    /// @notice Seconds from `setFeed` until the new source is valid.
    function notice() external view returns (uint256);

    /// @notice The uptime feed (zero if the chain has none), and the grace period after an outage in seconds.
    function uptime() external view returns (address feed, uint256 grace);
}
