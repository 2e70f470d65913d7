// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {Restricted} from "./base/Restricted.sol";
import {IAggregator} from "./interfaces/IAggregator.sol";
import {IAggregatorOracle} from "./interfaces/IAggregatorOracle.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {DelayBoundsLib} from "./libraries/DelayBoundsLib.sol";
import {NOTICE} from "./types/Durations.sol";

/// @title Price oracle over Chainlink-style feeds
contract AggregatorOracle is IAggregatorOracle, Restricted {
    // ------------------------------------------------------------------ constants, immutables

    uint256 private constant ROUND_BYTES = 10;
    /// @dev A feed's round number has the phase of its aggregator above these bits.
    uint256 private constant PHASE_SHIFT = 64;
    uint256 private constant PRICE_DECIMALS = 18;
    uint256 private constant MAX_HEARTBEAT = 2 days;
    uint256 private constant MAX_NOTICE = 30 days;
    uint256 private constant MAX_GRACE = 1 days;

    uint256 private immutable _NOTICE;
    IAggregator private immutable _UPTIME;
    uint256 private immutable _GRACE;

    // ------------------------------------------------------------------ storage

    mapping(bytes32 feedId => Source) private _latest;
    /// @dev The source before the latest.
    mapping(bytes32 feedId => Source) private _former;

    // ------------------------------------------------------------------ constructor

    /// @param noticeSeconds At least a day, except on test chains. With 0 a change is valid immediately and for every report.
    /// @param uptimeFeed Reports outages of the chain; zero if there is none.
    /// @param grace Seconds after an outage in which reports are invalid.
    constructor(address access, uint256 noticeSeconds, address uptimeFeed, uint256 grace) Restricted(access) {
        DelayBoundsLib.requireWithin(noticeSeconds, NOTICE / 1000, MAX_NOTICE);
        DelayBoundsLib.requireWithin(grace, 0, MAX_GRACE);
        _NOTICE = noticeSeconds;
        _UPTIME = IAggregator(uptimeFeed);
        _GRACE = grace;
    }

    // ------------------------------------------------------------------ management

    /// @inheritdoc IAggregatorOracle
    function setFeed(bytes32 feedId, address aggregator, uint32 heartbeat) external restricted {
        uint8 decimals = aggregator.code.length == 0 ? 0 : IAggregator(aggregator).decimals();
        bool valid = aggregator.code.length != 0 && decimals <= PRICE_DECIMALS && heartbeat != 0 && heartbeat <= MAX_HEARTBEAT;
        if (!valid) revert SourceInvalid(aggregator, heartbeat, decimals);

        if (!_isWaiting(feedId)) _former[feedId] = _latest[feedId];
        uint48 activeFrom = _NOTICE == 0 ? 0 : uint48((block.timestamp + _NOTICE) * 1000);
        _latest[feedId] = Source(aggregator, heartbeat, decimals, activeFrom);
        emit FeedSet(feedId, aggregator, heartbeat, decimals, activeFrom);
    }

    /// @inheritdoc IAggregatorOracle
    function cancelFeed(bytes32 feedId) external restricted {
        if (!_isWaiting(feedId)) revert NoChangePending(feedId);
        _latest[feedId] = _former[feedId];
        delete _former[feedId];
        emit FeedCancelled(feedId);
    }

    function _isWaiting(bytes32 feedId) private view returns (bool) {
        return block.timestamp * 1000 < _latest[feedId].activeFrom;
    }

    // ------------------------------------------------------------------ reports

    /// @inheritdoc IPriceOracle
    function verify(bytes32 feedId, uint256 price, uint256 observedAt, bytes calldata proof) external view {
        Source memory source = _latest[feedId];
        if (observedAt < source.activeFrom) {
            source = _former[feedId];
            // The source before the former one is no longer stored.
            if (observedAt < source.activeFrom) revert ObservedTooEarly(feedId, source.activeFrom, observedAt);
        }
        if (source.aggregator == address(0)) revert FeedUnknown(feedId);
        if (proof.length != ROUND_BYTES) revert ProofLengthWrong(ROUND_BYTES, proof.length);
        uint80 round = uint80(bytes10(proof));

        (uint80 id, int256 answer,, uint256 updatedAt, uint80 answeredIn) =
            IAggregator(source.aggregator).getRoundData(round);
        if (id != round || updatedAt == 0 || answeredIn < round) revert RoundIncomplete(feedId, round);
        if (answer <= 0) revert AnswerNotPositive(feedId, round, answer);
        uint256 reported = uint256(answer) * 10 ** (PRICE_DECIMALS - source.decimals);
        if (price != reported) revert AnswerDiffers(feedId, round, reported, price);

        uint256 from = updatedAt * 1000;
        uint256 to = _endOf(IAggregator(source.aggregator), round, from + uint256(source.heartbeat) * 1000);
        if (observedAt < from || observedAt >= to) revert ObservedOutsideRound(round, from, to, observedAt);
        _requireUp(observedAt);
    }

    /// @dev Time at which the round stops being the feed's answer; at most `outdated`.
    function _endOf(IAggregator aggregator, uint80 round, uint256 outdated) private view returns (uint256) {
        (uint80 latest,,,,) = aggregator.latestRoundData();
        if (latest == round) return outdated;
        // The feed has replaced the aggregator of an earlier phase, which may go on answering.
        if (latest >> PHASE_SHIFT != round >> PHASE_SHIFT) revert RoundSuperseded(round, latest);
        // A round that is not the latest has a next round, unless that round has no answer.
        try aggregator.getRoundData(round + 1) returns (uint80, int256, uint256, uint256 updatedAt, uint80) {
            if (updatedAt == 0) revert RoundSuperseded(round, latest);
            // No moment belongs to two rounds: at a close, any account could choose between their prices.
            uint256 end = updatedAt * 1000;
            return end < outdated ? end : outdated;
        } catch {
            revert RoundSuperseded(round, latest);
        }
    }

    function _requireUp(uint256 observedAt) private view {
        if (address(_UPTIME) == address(0)) return;
        (, int256 down, uint256 since,,) = _UPTIME.latestRoundData();
        if (down != 0 || since == 0) revert SequencerDown();
        uint256 from = (since + _GRACE) * 1000;
        if (observedAt < from) revert SequencerResuming(from, observedAt);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IAggregatorOracle
    function sourceAt(bytes32 feedId, uint256 observedAt) external view returns (Source memory source) {
        source = _latest[feedId];
        if (observedAt < source.activeFrom) source = _former[feedId];
        if (observedAt < source.activeFrom) delete source;
    }

    /// @inheritdoc IAggregatorOracle
    function notice() external view returns (uint256) {
        return _NOTICE;
    }

    /// @inheritdoc IAggregatorOracle
    function uptime() external view returns (address feed, uint256 grace) {
        return (address(_UPTIME), _GRACE);
    }
}
