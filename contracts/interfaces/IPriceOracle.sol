// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title A source of prices that a market can check but not choose
 * @notice The keeper names price and time; the oracle says whether they were reported. What a market may do with a report
 * (age, order, size of the move) is the market's business.
 */
interface IPriceOracle {
    /// @notice Reverts unless `price` was reported for `feedId` at `observedAt`.
    /// @param price Price x 1e18.
    /// @param observedAt Milliseconds.
    /// @param proof What this kind of oracle needs: signatures, a round number.
    function verify(bytes32 feedId, uint256 price, uint256 observedAt, bytes calldata proof) external view;
}
