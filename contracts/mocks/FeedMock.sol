// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAggregator} from "../interfaces/IAggregator.sol";

/// @title A feed whose rounds a test sets
contract FeedMock is IAggregator {
    struct Round {
        int256 answer;
        uint256 startedAt;
        uint256 updatedAt;
        uint80 answeredInRound;
    }

    error NoDataPresent();

    uint8 public decimals;
    uint80 public latest;
    mapping(uint80 roundId => Round) public rounds;

    constructor(uint8 howMany) {
        decimals = howMany;
    }

    function push(uint80 roundId, Round calldata round) external {
        rounds[roundId] = round;
        latest = roundId;
    }

    function getRoundData(uint80 roundId)
        public
        view
        returns (uint80 id, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)
    {
        Round memory round = rounds[roundId];
        // Like real feeds: reverts for an unknown round, and returns zeros for a round that has started without an answer.
        if (round.startedAt == 0) revert NoDataPresent();
        return (roundId, round.answer, round.startedAt, round.updatedAt, round.answeredInRound);
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        Round memory round = rounds[latest];
        return (latest, round.answer, round.startedAt, round.updatedAt, round.answeredInRound);
    }
}
