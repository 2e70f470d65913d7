// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The functions used of a Chainlink-style feed. Times in unix seconds
interface IAggregator {
    /// @notice Decimals of every answer.
    function decimals() external view returns (uint8);

    /// @dev Reverts or returns zeros for a round without data.
    function getRoundData(uint80 roundId)
        external
        view
        returns (uint80 id, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound);

    /// @notice The newest round. Times in unix seconds; reverts if there is none.
    function latestRoundData()
        external
        view
        returns (uint80 id, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound);
}
